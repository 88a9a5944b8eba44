package transports

import (
	"sync"
	"sync/atomic"
	"time"
)

// workerPool is the goroutines on which a Direct server answers. A message is handed to one that waits, and only if none does a
// new one begins: a goroutine that has answered before has a stack that is large enough, and being woken by a channel it
// runs next on its waker's processor. Their number has no bound of its own, because each message is one request of a caller
// who waits.
//
// Goroutines that have nothing to do leave: within two workerIdleCheck all of them when nothing comes any more, half of those
// that wait per workerIdleCheck while something does.
type workerPool struct {
	answer func(m Message) // set once, before jobs is used; it does not panic
	// jobs has no buffer: it takes a message only from a sender who finds a goroutine waiting. The zero Message dismisses.
	jobs           chan Message
	usedSinceCheck atomic.Bool // something was given since the last look

	mu      sync.Mutex
	workers int         // goroutines, those that answer included
	timer   *time.Timer // of the next look; nil while there is none
	closed  bool
	allDone chan struct{} // made by close, closed when there is no goroutine any more
}

// workerIdleCheck is the time between two looks at who waits in vain.
const workerIdleCheck = time.Second

// startAnswering must be called before give, which does not lock for what it sets.
func (c *workerPool) startAnswering(answer func(Message)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.answer, c.jobs = answer, make(chan Message)
	}
}

// dispatchMessage has m answered. It does not block, and must not be called after close.
func (c *workerPool) dispatchMessage(m Message) {
	if !c.usedSinceCheck.Load() {
		c.usedSinceCheck.Store(true)
	}
	select {
	case c.jobs <- m:
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.workers++
		if c.timer == nil {
			c.timer = time.AfterFunc(workerIdleCheck, c.dismissIdle)
		}
		go c.answerLoop(m)
	}
}

// goTracked runs f on a goroutine of its own, which close waits for. After close it does nothing.
func (c *workerPool) goTracked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.workers++
	go func() {
		defer c.workerDone()
		f()
	}()
}

func (c *workerPool) answerLoop(m Message) {
	defer c.workerDone() // also if the answer ends its goroutine
	for m.ID != 0 {
		c.answer(m)
		m = <-c.jobs // the zero Message once it is closed
	}
}

func (c *workerPool) workerDone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workers--; c.workers == 0 && c.closed {
		close(c.allDone)
	}
}

// dismissIdle lets go who is not needed.
func (c *workerPool) dismissIdle() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.workers == 0 {
		c.timer = nil
		return
	}
	surplus := c.workers
	if c.usedSinceCheck.Swap(false) {
		surplus /= 2
	}
	for waiting := true; waiting && surplus > 0; surplus-- {
		select {
		case c.jobs <- Message{}:
		default:
			waiting = false
		}
	}
	c.timer.Reset(workerIdleCheck)
}

// close lets everybody go and returns a channel that is closed when they have gone.
func (c *workerPool) close() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed, c.allDone = true, make(chan struct{})
	if c.jobs != nil {
		close(c.jobs)
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.workers == 0 {
		close(c.allDone)
	}
	return c.allDone
}
