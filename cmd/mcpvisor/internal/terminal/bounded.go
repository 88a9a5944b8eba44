package terminal

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// maxBacklog bounds what waits for a reader of standard error, in bytes: some thousand lines of a log. What does not fit is
	// dropped and counted.
	maxBacklog = 1 << 20
	// writeTime bounds how long one Write waits until its line is written. After the first that took so long, no Write waits
	// until the reader has caught up.
	writeTime = 100 * time.Millisecond
	// flushTime bounds the wait for the reader at the end of a run.
	flushTime = time.Second
)

// boundedWriter is the standard error of a run, which a reader that stopped reading cannot block. Lines go in order through a
// queue to one goroutine; what does not fit is dropped, and a line says how much is missing. While the reader keeps up, Write
// returns only when its line is written, so that the order with standard output stays. It is safe for concurrent use. The
// caller must call close.
type boundedWriter struct {
	// out is used by the goroutine of writeLoop alone.
	out io.Writer
	// wake has room for one signal and is never closed; done is closed when writeLoop returns.
	wake chan struct{}
	done chan struct{}

	// mu guards the fields below it. It is not held while out is written.
	mu sync.Mutex
	// queue holds the bytes that wait for writeLoop.
	queue   []byte
	lines   uint64 // number of lines taken into the queue since the start
	written uint64 // number of those that were written to out
	// waiters holds the channel of each Write that waits, by the number of its line; writeLoop closes it.
	waiters map[uint64]chan struct{}
	// lost counts the lines dropped since the last that reported the loss.
	lost int
	// stuck is true after a Write waited in vain, until the queue is empty: no Write waits then.
	stuck  bool
	closed bool
}

// newBoundedWriter returns a bounded writer and starts its goroutine. The goroutine ends after close, once out has accepted
// what is being written; if out blocks for ever it ends with the process.
func newBoundedWriter(out io.Writer) *boundedWriter {
	b := &boundedWriter{out: out, wake: make(chan struct{}, 1), done: make(chan struct{}), waiters: map[uint64]chan struct{}{}}
	go b.writeLoop()
	return b
}

// Write takes p whole, or drops it and counts it. It always reports success, because standard error is the only place where an
// error could be reported. A single p larger than the bound is accepted into an empty queue.
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

// writeLoop writes the queue whenever wake is signalled, until close. It takes all that waits at once, and writes without the
// lock, so that Write can go on to fill the queue.
func (b *boundedWriter) writeLoop() {
	defer close(b.done)
	for range b.wake {
		for {
			b.mu.Lock()
			part, number, closed := b.queue, b.lines, b.closed
			b.queue = nil
			if b.lost > 0 {
				// The notice stands where the lines are missing: after what was queued before them.
				part = fmt.Appendf(part, "mcpvisor: %s here: nobody read them in time\n", CountOf(b.lost, "line")+" missing")
				b.lost = 0
			}
			// Nothing is left: the reader has caught up, and a Write may wait again.
			if len(part) == 0 {
				b.stuck = false
				b.mu.Unlock()
				if closed {
					return
				}
				break
			}
			b.mu.Unlock()
			_, _ = b.out.Write(part) // an error could be reported only here
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

// close ends the writer and waits up to flushTime for what is in it, because a reader that does not read must not keep the
// program.
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

// Fd returns the descriptor of the file, so that IsTerminal and ColumnsOf look through the writer. out is an *os.File here.
func (b *boundedWriter) Fd() uintptr { return b.out.(*os.File).Fd() }

// BoundStderr puts a bounded writer before a standard error that has a reader: a pipe or a terminal. A regular file always
// accepts what is written, and a writer of a test is not touched. The caller calls the returned function at the end of the run.
func BoundStderr(w io.Writer) (io.Writer, func()) {
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
