//go:build unix

package pipe

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxPipeSize is the most that a pipe can hold without special rights. After StopReading no more than this is read, so that a
// process that keeps writing cannot hold up the end.
const maxPipeSize = 1 << 20

// Reader reads a pipe to its end. It takes a buffer only when there is something to read, so that an idle connection holds none.
type Reader struct {
	// File is in non-blocking mode and belongs to the runtime's poller. stopping is set by StopReading.
	File     *os.File
	stopping atomic.Bool
}

// ReadUntilEnd gives all bytes to feed, which must not keep them, until the end of the pipe, until feed reports false, or until
// StopReading was called and the pipe is empty.
func (in *Reader) ReadUntilEnd(feed func([]byte) bool) {
	raw, err := in.File.SyscallConn()
	if err != nil {
		return
	}
	last := maxPipeSize
	// The poller calls step whenever the pipe may have bytes, and waits again when step reports false.
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
	// One call reads for as long as the pipe lives. Its error is the deadline that StopReading has set, or a closed file.
	if err := raw.Read(step); errors.Is(err, os.ErrDeadlineExceeded) {
		_ = in.File.SetReadDeadline(time.Time{})
		// With stopping set, step reports true at an empty pipe, so that this call does not wait.
		_ = raw.Read(step)
	}
}

// StopReading makes ReadUntilEnd read the bytes that are in the pipe now and return. The deadline in the past wakes its wait.
func (in *Reader) StopReading() {
	in.stopping.Store(true)
	_ = in.File.SetReadDeadline(time.Unix(1, 0))
}

// Writer writes into a pipe. One goroutine at a time uses it: the Queue sees to that.
type Writer struct {
	// raw is the pipe. buf, n and err are the argument and the results of writeOnce, which is made once so that tryWrite
	// allocates nothing.
	raw       syscall.RawConn
	buf       []byte
	n         int
	err       error
	writeOnce func(fd uintptr) bool
}

// Nonblocking is true where a write never waits, so that a sender may try by itself, and where a read can be interrupted.
const Nonblocking = true

// NewWriter fails only if f is closed.
func NewWriter(f *os.File) (*Writer, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	o := &Writer{raw: raw}
	o.writeOnce = func(fd uintptr) bool {
		o.n, o.err = writeNow(int(fd), o.buf)
		return true
	}
	return o, nil
}

// tryWrite writes as many bytes as fit now, maybe none, and does not wait.
func (o *Writer) tryWrite(buf []byte) (int, error) {
	o.buf = buf
	if err := o.raw.Write(o.writeOnce); err != nil {
		return 0, err
	}
	o.buf = nil
	return o.n, o.err
}

// writeLoop calls step whenever the pipe has room, until step reports that it is done. It returns early if the file is closed.
func (o *Writer) writeLoop(step func(write func([]byte) (int, error)) (done bool)) {
	_ = o.raw.Write(func(fd uintptr) bool {
		return step(func(buf []byte) (int, error) { return writeNow(int(fd), buf) })
	})
}

// writeNow makes one write. A full pipe is no error: it has taken 0 bytes.
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
