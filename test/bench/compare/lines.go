package compare

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"sync"
)

// lines is a peer of an in-process server over a pair of pipes.
type lines struct {
	mu  sync.Mutex
	in  *bufio.Reader
	out io.Writer
}

func newLines(in io.Reader, out io.Writer) *lines {
	return &lines{in: bufio.NewReaderSize(in, 128<<10), out: out}
}

// Read implements transports.Peer; the context counts when the pipe is closed.
func (l *lines) Read(context.Context) ([]byte, error) {
	line, err := l.in.ReadBytes('\n')
	if err != nil {
		return nil, io.EOF
	}
	return bytes.TrimSuffix(line, []byte("\n")), nil
}

// Write implements transports.Peer.
func (l *lines) Write(_ context.Context, msg []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.out.Write(append(msg, '\n')); err != nil {
		return io.ErrClosedPipe
	}
	return nil
}
