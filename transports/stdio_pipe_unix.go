//go:build unix

package transports

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxPipeSize is the most that a pipe can hold without special rights. What was written before an end is never more.
const maxPipeSize = 1 << 20

// pipeReader reads a pipe to its end. An inlet that waits holds no buffer.
type pipeReader struct {
	f        *os.File
	stopping atomic.Bool
}

// readUntilEnd gives everything that comes to feed, which must not keep it, until the end of the pipe, until feed reports false,
// or until stop.
func (in *pipeReader) readUntilEnd(feed func([]byte) bool) {
	raw, err := in.f.SyscallConn()
	if err != nil {
		return
	}
	last := maxPipeSize
	step := func(fd uintptr) (done bool) {
		buf := pipeBuffers.Get().(*[]byte)
		defer pipeBuffers.Put(buf)
		for last > 0 {
			stopping := in.stopping.Load()
			n, err := unix.Read(int(fd), *buf)
			switch {
			case err == unix.EINTR:
				continue
			case err == unix.EAGAIN:
				return stopping
			case err != nil || n == 0:
				return true
			}
			if stopping {
				last -= n
			}
			if !feed((*buf)[:n]) {
				return true
			}
		}
		return true
	}
	// One call reads for as long as the pipe lives. Its error is the deadline that stop has set, or a closed file.
	if err := raw.Read(step); errors.Is(err, os.ErrDeadlineExceeded) {
		_ = in.f.SetReadDeadline(time.Time{})
		_ = raw.Read(step) // does not wait any more
	}
}

// stopReading lets run read what is in the pipe now and return.
func (in *pipeReader) stopReading() {
	in.stopping.Store(true)
	_ = in.f.SetReadDeadline(time.Unix(1, 0))
}

// pipeWriter writes into a pipe. It is used by one goroutine at a time.
type pipeWriter struct {
	raw       syscall.RawConn
	buf       []byte
	n         int
	err       error
	writeOnce func(fd uintptr) bool
}

// nonblocking says that a write never waits, so that a sender may try by itself, and that a read can be interrupted.
const nonblocking = true

func newPipeWriter(f *os.File) (*pipeWriter, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	o := &pipeWriter{raw: raw}
	o.writeOnce = func(fd uintptr) bool {
		o.n, o.err = writeNow(int(fd), o.buf)
		return true
	}
	return o, nil
}

// tryWrite writes as much as fits and does not wait.
func (o *pipeWriter) tryWrite(buf []byte) (int, error) {
	o.buf = buf
	if err := o.raw.Write(o.writeOnce); err != nil {
		return 0, err
	}
	o.buf = nil
	return o.n, o.err
}

// writeLoop calls step whenever more fits, until it reports that it is done. It returns early if the file is closed.
func (o *pipeWriter) writeLoop(step func(write func([]byte) (int, error)) (done bool)) {
	_ = o.raw.Write(func(fd uintptr) bool {
		return step(func(buf []byte) (int, error) { return writeNow(int(fd), buf) })
	})
}

func writeNow(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Write(fd, buf)
		switch err {
		case nil:
			return n, nil
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return 0, nil
		}
		return 0, err
	}
}
