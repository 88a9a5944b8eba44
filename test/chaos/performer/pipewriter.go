package performer

import (
	"io"
	"sync"
	"time"
)

// pipeWriter writes to a pipe in the order of the calls, without making the caller wait: the client may not be reading, and
// the process must still follow the orders of the harness.
type pipeWriter struct {
	w io.Writer

	mu   sync.Mutex
	wake *sync.Cond
	// queue has no bound of its own; the machine in the harness writes no more while its output is held up.
	queue []rawOutput
	// ending is closed when the process is about to exit; slow output and repetitions stop then.
	ending chan struct{}
	// finished is closed when writeLoop has written everything.
	finished chan struct{}
}

// newPipeWriter starts the goroutine that writes; flushAndStop ends it.
func newPipeWriter(w io.Writer) *pipeWriter {
	o := &pipeWriter{w: w, ending: make(chan struct{}), finished: make(chan struct{})}
	o.wake = sync.NewCond(&o.mu)
	go o.writeLoop()
	return o
}

// enqueueOutput adds bytes to write. It does not block.
func (o *pipeWriter) enqueueOutput(f rawOutput) {
	o.mu.Lock()
	o.queue = append(o.queue, f)
	o.mu.Unlock()
	o.wake.Signal()
}

// flushTimeout bounds how long an exit waits for the earlier output: the client may have stopped reading.
const flushTimeout = time.Second

// flushAndStop returns when everything has been written, or after flushTimeout. It cuts slow output and repetitions short.
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

// isEnding reports whether flushAndStop was called.
func (o *pipeWriter) isEnding() bool {
	select {
	case <-o.ending:
		return true
	default:
		return false
	}
}

// writeLoop writes the queue until flushAndStop. Errors of writing are ignored: the reader of the pipe has gone, and the end of
// input will tell the machine.
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

// writeOutput writes one entry of the queue: at once, in chunks, or repeatedly.
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

// sleepOrEnd waits for d, or until the process is about to exit.
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
