package transports

import (
	"os"
	"sync/atomic"
)

// pipeReader reads a pipe to its end. stopping has no effect here.
type pipeReader struct {
	f        *os.File
	stopping atomic.Bool
}

// readUntilEnd gives all bytes to feed, which must not keep them, until the end of the pipe or until feed reports false. A read
// of a pipe cannot be interrupted here: readUntilEnd returns when the job object has ended every process that can write.
func (in *pipeReader) readUntilEnd(feed func([]byte) bool) {
	buf := make([]byte, 16<<10)
	for {
		n, err := in.f.Read(buf)
		if n > 0 && !feed(buf[:n]) || err != nil {
			return
		}
	}
}

// stopReading only notes the wish; drainOutput kills the job to end the read.
func (in *pipeReader) stopReading() { in.stopping.Store(true) }

// pipeWriter writes into a pipe. One goroutine at a time uses it: the writeQueue sees to that.
type pipeWriter struct{ f *os.File }

// nonblocking is false because a write may wait, so that a sender must not make it by itself, and because a read may wait for
// ever.
const nonblocking = false

func newPipeWriter(f *os.File) (*pipeWriter, error) { return &pipeWriter{f: f}, nil }

// tryWrite would wait; the writeQueue does not call it while nonblocking is false.
func (o *pipeWriter) tryWrite(buf []byte) (int, error) { return o.f.Write(buf) }

// writeLoop calls step, whose writes wait for room, until step reports that it is done.
func (o *pipeWriter) writeLoop(step func(write func([]byte) (int, error)) (done bool)) {
	for !step(o.f.Write) {
	}
}
