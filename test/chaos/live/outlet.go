package live

import (
	"io"
	"sync"
	"time"
)

// outlet writes to a pipe in the order in which it is told, without making anybody wait: the manager may not read, and
// the child must hear what the harness says all the same.
type outlet struct {
	w io.Writer

	mu       sync.Mutex
	wake     *sync.Cond
	queue    []flood
	ending   chan struct{} // closed when the child is to exit: what drips stops
	finished chan struct{} // closed when nothing is left to be written
}

func newOutlet(w io.Writer) *outlet {
	o := &outlet{w: w, ending: make(chan struct{}), finished: make(chan struct{})}
	o.wake = sync.NewCond(&o.mu)
	go o.run()
	return o
}

func (o *outlet) add(f flood) {
	o.mu.Lock()
	o.queue = append(o.queue, f)
	o.mu.Unlock()
	o.wake.Signal()
}

// farewell is how long an exit waits for the output before it to be taken.
const farewell = time.Second

// finish returns when everything has been written, or after farewell. Floods are cut.
func (o *outlet) finish() {
	o.mu.Lock()
	close(o.ending)
	o.mu.Unlock()
	o.wake.Signal()
	t := time.NewTimer(farewell)
	defer t.Stop()
	select {
	case <-o.finished:
	case <-t.C:
	}
}

func (o *outlet) ends() bool {
	select {
	case <-o.ending:
		return true
	default:
		return false
	}
}

// run writes until finish. A pipe that nobody reads any more swallows the rest: its process is about to be told.
func (o *outlet) run() {
	defer close(o.finished)
	for {
		o.mu.Lock()
		for len(o.queue) == 0 && !o.ends() {
			o.wake.Wait()
		}
		if len(o.queue) == 0 {
			o.mu.Unlock()
			return
		}
		f := o.queue[0]
		o.queue = o.queue[1:]
		o.mu.Unlock()
		o.write(f)
	}
}

func (o *outlet) write(f flood) {
	for range max(f.Repeat, 1) {
		if f.Chunk <= 0 {
			_, _ = o.w.Write(f.Bytes)
		}
		for rest := f.Bytes; f.Chunk > 0 && len(rest) > 0; {
			n := min(f.Chunk, len(rest))
			_, _ = o.w.Write(rest[:n])
			rest = rest[n:]
			o.pause(f.Every)
		}
		if f.Repeat > 1 && f.Chunk <= 0 {
			o.pause(f.Every)
		}
		if o.ends() && (f.Repeat > 1 || f.Chunk > 0) {
			return
		}
	}
}

// pause waits, and no longer than until the exit.
func (o *outlet) pause(d time.Duration) {
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
