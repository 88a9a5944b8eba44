package live

import (
	"io"
	"sync"
	"time"
)

// pipeWriter writes to a pipe in the order in which it is told, without making anybody wait: the manager may not read, and
// the child must hear what the harness says all the same.
type pipeWriter struct {
	w io.Writer

	mu       sync.Mutex
	wake     *sync.Cond
	queue    []rawOutput
	ending   chan struct{} // closed when the child is to exit: what drips stops
	finished chan struct{} // closed when nothing is left to be written
}

func newPipeWriter(w io.Writer) *pipeWriter {
	o := &pipeWriter{w: w, ending: make(chan struct{}), finished: make(chan struct{})}
	o.wake = sync.NewCond(&o.mu)
	go o.writeLoop()
	return o
}

func (o *pipeWriter) enqueueOutput(f rawOutput) {
	o.mu.Lock()
	o.queue = append(o.queue, f)
	o.mu.Unlock()
	o.wake.Signal()
}

// flushTimeout is how long an exit waits for the output before it to be taken.
const flushTimeout = time.Second

// flushAndStop returns when everything has been written, or after farewell. Floods are cut.
func (o *pipeWriter) flushAndStop() {
	o.mu.Lock()
	close(o.ending)
	o.mu.Unlock()
	o.wake.Signal()
	t := time.NewTimer(flushTimeout)
	defer t.Stop()
	select {
	case <-o.finished:
	case <-t.C:
	}
}

func (o *pipeWriter) isEnding() bool {
	select {
	case <-o.ending:
		return true
	default:
		return false
	}
}

// writeLoop writes until finish. A pipe that nobody reads any more swallows the rest: its process is about to be told.
func (o *pipeWriter) writeLoop() {
	defer close(o.finished)
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.isEnding() {
			o.wake.Wait()
		}
		if len(o.queue) == 0 {
			o.mu.Unlock()
			return
		}
		f := o.queue[0]
		o.queue = o.queue[1:]
		o.mu.Unlock()
		o.writeOutput(f)
	}
}

func (o *pipeWriter) writeOutput(f rawOutput) {
	for range max(f.Repeat, 1) {
		if f.Chunk <= 0 {
			_, _ = o.w.Write(f.Bytes)
		}
		for rest := f.Bytes; f.Chunk > 0 && len(rest) > 0; {
			n := min(f.Chunk, len(rest))
			_, _ = o.w.Write(rest[:n])
			rest = rest[n:]
			o.sleepOrEnd(f.Every)
		}
		if f.Repeat > 1 && f.Chunk <= 0 {
			o.sleepOrEnd(f.Every)
		}
		if o.isEnding() && (f.Repeat > 1 || f.Chunk > 0) {
			return
		}
	}
}

// sleepOrEnd waits, and no longer than until the exit.
func (o *pipeWriter) sleepOrEnd(d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-o.ending:
	}
}
