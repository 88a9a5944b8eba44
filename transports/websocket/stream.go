package websocket

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// stream is the connection below the library. It counts the bytes that the library reads and writes, for the keepalive.
type stream struct {
	rwc       io.ReadWriteCloser
	openedAt  time.Time
	closeOnce func() // closes the stream, once; safe for concurrent use

	lastRead     atomic.Int64 // when the last byte came, in nanoseconds since openedAt
	bytesWritten atomic.Int64 // bytes that the system has taken
	writesBegun  atomic.Int64 // number of writes begun, by which the queue sees whether a failed write has begun
	readFailed   atomic.Bool  // a read has failed: there is nothing more
	err          error        // of the read before; only the reader uses it
}

// newStream reports false if body is read-only.
func newStream(body io.ReadCloser) (*stream, bool) {
	rwc, ok := body.(io.ReadWriteCloser)
	if !ok {
		return nil, false
	}
	s := &stream{rwc: rwc, openedAt: time.Now()}
	s.closeOnce = sync.OnceFunc(func() { _ = rwc.Close() })
	return s, true
}

// Read implements io.Reader. It returns an error only without bytes, so that readFailed is set only when a reader wanted more
// than there was.
func (s *stream) Read(p []byte) (n int, err error) {
	if s.err == nil {
		n, s.err = s.rwc.Read(p)
	}
	if n > 0 {
		s.lastRead.Store(int64(time.Since(s.openedAt)))
		return n, nil
	}
	if s.err != nil {
		s.readFailed.Store(true)
	}
	return 0, s.err
}

// Write implements io.Writer. It counts the write before it makes it: a write that has begun may reach the server, whatever comes
// of it.
func (s *stream) Write(p []byte) (int, error) {
	s.writesBegun.Add(1)
	n, err := s.rwc.Write(p)
	s.bytesWritten.Add(int64(n))
	return n, err
}

// Close implements io.Closer. The library and closeStream may both call it.
func (s *stream) Close() error {
	s.closeOnce()
	return nil
}

// silentFor returns how long no byte has come.
func (s *stream) silentFor() time.Duration {
	return time.Since(s.openedAt) - time.Duration(s.lastRead.Load())
}
