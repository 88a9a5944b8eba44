package transports

import (
	"os"
	"sync/atomic"
)

// pipeReader reads a pipe to its end.
type pipeReader struct {
	f        *os.File
	stopping atomic.Bool
}

// readUntilEnd gives everything that comes to feed, which must not keep it, until the end of the pipe or until feed reports
// false. A read of a pipe cannot be interrupted here: run ends when the job object has ended everybody who can write.
func (in *pipeReader) readUntilEnd(feed func([]byte) bool) {
	buf := make([]byte, 16<<10)
	for {
		n, err := in.f.Read(buf)
		if n > 0 && !feed(buf[:n]) || err != nil {
			return
		}
	}
}

func (in *pipeReader) stopReading() { in.stopping.Store(true) }

// pipeWriter writes into a pipe. It is used by one goroutine at a time.
type pipeWriter struct{ f *os.File }

// nonblocking says that a write may wait, so that a sender must not do it by itself, and a read too, for ever.
const nonblocking = false

func newPipeWriter(f *os.File) (*pipeWriter, error) { return &pipeWriter{f: f}, nil }

func (o *pipeWriter) tryWrite(buf []byte) (int, error) { return o.f.Write(buf) }

// writeLoop calls step, whose write waits, until it reports that it is done.
func (o *pipeWriter) writeLoop(step func(write func([]byte) (int, error)) (done bool)) {
	for !step(o.f.Write) {
	}
}
