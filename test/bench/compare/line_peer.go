package compare

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"sync"
)

// linePeer is a peer of an in-process server over a pair of pipes, one message per line.
type linePeer struct {
	// mu guards out.
	mu  sync.Mutex
	in  *bufio.Reader
	out io.Writer
}

func newLinePeer(in io.Reader, out io.Writer) *linePeer {
	return &linePeer{in: bufio.NewReaderSize(in, 128<<10), out: out}
}

// Read implements inprocess.Peer. It ignores its context, because closing the pipe ends it.
func (l *linePeer) Read(context.Context) ([]byte, error) {
	line, err := l.in.ReadBytes('\n')
	if err != nil {
		return nil, io.EOF
	}
	return bytes.TrimSuffix(line, []byte("\n")), nil
}

// Write implements inprocess.Peer.
func (l *linePeer) Write(_ context.Context, msg []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.out.Write(append(msg, '\n')); err != nil {
		return io.ErrClosedPipe
	}
	return nil
}
