package inprocess

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
)

// workerPool has the goroutines on which a DirectPeer answers. It hands a message to a goroutine that waits, and starts a new one
// only if none does: a goroutine that has answered before has a stack that is large enough, and one that a channel wakes runs
// next on its waker's processor. Their number has no bound of its own, because each message is one request of a caller who waits.
//
// Idle goroutines are dismissed: all of them within two workerIdleCheck when no message comes any more, half of those that wait
// per workerIdleCheck while messages come.
type workerPool struct {
	answer func(m transports.Message) // set once, before jobs is used; it does not panic
	// jobs has no buffer: a sender can give it a message only if a goroutine waits. The zero Message dismisses a goroutine.
	jobs           chan transports.Message
	usedSinceCheck atomic.Bool // a message was dispatched since the last check

	// mu guards everything below.
	mu      sync.Mutex
	workers int         // all goroutines, those that answer included
	timer   *time.Timer // runs the next check; nil while there is none
	closed  bool
	allDone chan struct{} // made by close, closed when the last goroutine has ended
}

// workerIdleCheck is the time between two checks for idle goroutines.
const workerIdleCheck = time.Second

// startAnswering must be called before the first dispatchMessage, which reads the fields that it sets without the lock.
func (c *workerPool) startAnswering(answer func(transports.Message)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.answer, c.jobs = answer, make(chan transports.Message)
	}
}

// dispatchMessage gives m to a goroutine that answers it. It does not block, and must not be called after close.
func (c *workerPool) dispatchMessage(m transports.Message) {
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

// goTracked runs f on a goroutine of its own, for which close waits. After close it does nothing.
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

// answerLoop answers m, and then every message that it gets from jobs, until it is dismissed.
func (c *workerPool) answerLoop(m transports.Message) {
	defer c.workerDone() // also if the answer ends its goroutine
	for m.ID != 0 {
		c.answer(m)
		m = <-c.jobs // the zero Message once jobs is closed
	}
}

// workerDone counts a goroutine out. The last one after close lets the connection's end go on.
func (c *workerPool) workerDone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.workers--; c.workers == 0 && c.closed {
		close(c.allDone)
	}
}

// dismissIdle ends goroutines that wait for a message: all if none came since the last check, else half. It never blocks, because
// it offers the dismissal only to goroutines that wait at that moment.
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
		case c.jobs <- transports.Message{}:
		default:
			waiting = false
		}
	}
	c.timer.Reset(workerIdleCheck)
}

// close dismisses every goroutine and returns a channel that is closed when all have ended.
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
