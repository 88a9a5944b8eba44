package origin

import (
	"bytes"
	"io"
	"sync"
)

// maxCopiedBody is the size in bytes up to which a message is copied. net/http writes a body that it knows to lie in memory
// together with the headers, through a buffer of 4 KiB, and any other body after them: copying this much costs less than a second
// write, a second TLS record and the server's second read.
const maxCopiedBody = 3 << 10

// RequestBody is the body of a message that belongs to the caller of Send. net/http may go on reading a body after the exchange
// has failed. DetachReaders makes sure that it does not, so that the caller may reuse the bytes, and so that nothing more is
// written of a message whose Send has returned. A small message is a copy, which is written in one piece or not at
// all.
type RequestBody struct {
	data   []byte
	copied bool

	// mu guards detached, and holds up DetachReaders while a Read copies from data.
	mu       sync.Mutex
	detached bool
}

// SetData sets the message before the first reader is made.
func (b *RequestBody) SetData(data []byte) {
	b.data = data
	if len(data) <= maxCopiedBody {
		b.data, b.copied = bytes.Clone(data), true
	}
}

// DetachReaders ends every reader of a body that is not a copy. The bytes belong to the caller again when it returns.
func (b *RequestBody) DetachReaders() {
	if b.copied {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.detached = true
}

// newReader reads the body from its beginning. net/http asks for another reader after a redirect, or when the connection broke
// before anything was written.
func (b *RequestBody) newReader() io.ReadCloser {
	if b.copied {
		return io.NopCloser(bytes.NewReader(b.data))
	}
	return &bodyReader{body: b}
}

// bodyReader reads a body that is not a copy. net/http uses each reader from one goroutine.
type bodyReader struct {
	body   *RequestBody
	offset int
}

// Read implements io.Reader. It holds the body's mutex while it copies, so that DetachReaders returns only when no copy runs.
func (r *bodyReader) Read(p []byte) (int, error) {
	r.body.mu.Lock()
	defer r.body.mu.Unlock()
	if r.offset == len(r.body.data) {
		// This is the end also when detached: net/http looks for it when the response may be there already.
		return 0, io.EOF
	}
	if r.body.detached {
		return 0, io.ErrClosedPipe
	}
	n := copy(p, r.body.data[r.offset:])
	r.offset += n
	return n, nil
}

// Close implements io.Closer. A reader holds nothing that had to be released.
func (r *bodyReader) Close() error { return nil }
