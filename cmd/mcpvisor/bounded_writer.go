package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// maxBacklog bounds what waits for a reader of standard error, in bytes: some thousand lines of a log.
	maxBacklog = 1 << 20
	// writeTime is how long a line of standard error may keep its writer; after the first that took so long, none waits until
	// everything has been read.
	writeTime = 100 * time.Millisecond
	// flushTime bounds the wait for a reader at the end of a run.
	flushTime = time.Second
)

// boundedWriter is the standard error of a run: a writer that no reader can hold up. Lines go through a queue to a goroutine of its
// own, in order; what does not fit is counted, and one line says how much is missing. As long as somebody reads, a write returns
// when it is done, so that the order with standard output stays. Safe for concurrent use. Close it.
type boundedWriter struct {
	out  io.Writer
	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	queue   []byte
	lines   uint64 // that were taken
	written uint64 // of them
	waiters map[uint64]chan struct{}
	lost    int
	stuck   bool
	closed  bool
}

// newBoundedWriter makes a bounded writer. Its goroutine ends with close, once to has taken what it is writing.
func newBoundedWriter(out io.Writer) *boundedWriter {
	b := &boundedWriter{out: out, wake: make(chan struct{}, 1), done: make(chan struct{}), waiters: map[uint64]chan struct{}{}}
	go b.writeLoop()
	return b
}

// Write takes p whole, or drops it and counts it. It gives no error: nobody could be told.
func (b *boundedWriter) Write(p []byte) (int, error) {
	b.mu.Lock()
	if b.closed || len(b.queue) > 0 && len(b.queue)+len(p) > maxBacklog {
		b.lost++
		b.mu.Unlock()
		return len(p), nil
	}
	b.queue = append(b.queue, p...)
	b.lines++
	number, wait := b.lines, !b.stuck
	var written chan struct{}
	if wait {
		written = make(chan struct{})
		b.waiters[number] = written
	}
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
	if !wait {
		return len(p), nil
	}
	t := time.NewTimer(writeTime)
	defer t.Stop()
	select {
	case <-written:
	case <-t.C:
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.waiters, number)
		b.stuck = b.written < number
	}
	return len(p), nil
}

func (b *boundedWriter) writeLoop() {
	defer close(b.done)
	for range b.wake {
		for {
			b.mu.Lock()
			part, number, closed := b.queue, b.lines, b.closed
			b.queue = nil
			if b.lost > 0 {
				part = fmt.Appendf(part, "mcpvisor: %s here: nobody read them in time\n", countOf(b.lost, "line")+" missing")
				b.lost = 0
			}
			if len(part) == 0 {
				b.stuck = false
				b.mu.Unlock()
				if closed {
					return
				}
				break
			}
			b.mu.Unlock()
			_, _ = b.out.Write(part) // nobody could be told
			b.mu.Lock()
			b.written = number
			for n, written := range b.waiters {
				if n <= number {
					close(written)
					delete(b.waiters, n)
				}
			}
			b.mu.Unlock()
		}
	}
}

// close ends the writer and waits for what is in it, for a second at most: whoever does not read must not keep the program.
func (b *boundedWriter) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
	t := time.NewTimer(flushTime)
	defer t.Stop()
	select {
	case <-b.done:
	case <-t.C:
	}
}

// Fd is that of the file: a person may be at the other end.
func (b *boundedWriter) Fd() uintptr { return b.out.(*os.File).Fd() }

// boundStderr puts a bounded writer before a standard error that somebody must read: a pipe or a terminal. A file takes what
// it is given.
func boundStderr(w io.Writer) (io.Writer, func()) {
	f, ok := w.(*os.File)
	if !ok {
		return w, func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode().IsRegular() {
		return w, func() {}
	}
	b := newBoundedWriter(f)
	return b, b.close
}
