package pipe

import (
	"os"
	"sync/atomic"
)

// Reader reads a pipe to its end. stopping has no effect here.
type Reader struct {
	File     *os.File
	stopping atomic.Bool
}

// ReadUntilEnd gives all bytes to feed, which must not keep them, until the end of the pipe or until feed reports false. A read
// of a pipe cannot be interrupted here: ReadUntilEnd returns when the job object has ended every process that can write.
func (in *Reader) ReadUntilEnd(feed func([]byte) bool) {
	buf := make([]byte, 16<<10)
	for {
		n, err := in.File.Read(buf)
		if n > 0 && !feed(buf[:n]) || err != nil {
			return
		}
	}
}

// StopReading only notes the wish; the connection (drainOutput in package stdio) kills the job to end the read.
func (in *Reader) StopReading() { in.stopping.Store(true) }

// Writer writes into a pipe. One goroutine at a time uses it: the Queue sees to that.
type Writer struct{ f *os.File }

// Nonblocking is false because a write may wait, so that a sender must not make it by itself, and because a read may wait for
// ever.
const Nonblocking = false

func NewWriter(f *os.File) (*Writer, error) { return &Writer{f: f}, nil }

// tryWrite would wait; the Queue does not call it while Nonblocking is false.
func (o *Writer) tryWrite(buf []byte) (int, error) { return o.f.Write(buf) }

// writeLoop calls step, whose writes wait for room, until step reports that it is done.
func (o *Writer) writeLoop(step func(write func([]byte) (int, error)) (done bool)) {
	for !step(o.f.Write) {
	}
}
