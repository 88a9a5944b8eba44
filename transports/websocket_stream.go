package transports

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// wsStream is the connection below the library: what it reads and writes passes here and is counted.
type wsStream struct {
	rwc  io.ReadWriteCloser
	born time.Time
	cut  func() // closes it, once; safe for concurrent use

	heard atomic.Int64 // when the last byte came, in nanoseconds since born
	moved atomic.Int64 // bytes that the system has taken
	tries atomic.Int64 // writes begun
	over  atomic.Bool  // a read has failed: there is nothing more
	err   error        // belongs to the reader: what the next read returns
}

// newWSStream reports false if body is read-only.
func newWSStream(body io.ReadCloser) (*wsStream, bool) {
	rwc, ok := body.(io.ReadWriteCloser)
	if !ok {
		return nil, false
	}
	s := &wsStream{rwc: rwc, born: time.Now()}
	s.cut = sync.OnceFunc(func() { _ = rwc.Close() })
	return s, true
}

// Read implements io.Reader. It fails only when it has nothing to give: so over is set only for who wanted more.
func (s *wsStream) Read(p []byte) (n int, err error) {
	if s.err == nil {
		n, s.err = s.rwc.Read(p)
	}
	if n > 0 {
		s.heard.Store(int64(time.Since(s.born)))
		return n, nil
	}
	if s.err != nil {
		s.over.Store(true)
	}
	return 0, s.err
}

// Write implements io.Writer.
func (s *wsStream) Write(p []byte) (int, error) {
	s.tries.Add(1)
	n, err := s.rwc.Write(p)
	s.moved.Add(int64(n))
	return n, err
}

// Close implements io.Closer.
func (s *wsStream) Close() error {
	s.cut()
	return nil
}

// silence is how long nothing has come.
func (s *wsStream) silence() time.Duration { return time.Since(s.born) - time.Duration(s.heard.Load()) }
