package stdio

import (
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/errs"
	"github.com/mcpvisor/mcpvisor/transports/stdio/internal/pipe"
)

const (
	// drainTime bounds the reading of an ended child's output that another process holds open.
	drainTime = 20 * time.Millisecond
	// exitTime is the time that a child which has closed a pipe gets to end, so that the error can say how. The kernel closes the
	// pipes of an ending child a moment before the child can be waited for.
	exitTime = 100 * time.Millisecond
	// fetchGraces times the grace is how long an installation has to take back what it has begun.
	fetchGraces = 4
	// killTime bounds the wait of the connection for a killed group. A process that is left then cannot be killed (it waits for a
	// device), or is a zombie whose parent does not reap it.
	killTime = 2 * time.Second
)

// endCause says which event has begun the end of a connection. Only the first one counts.
type endCause uint8

const (
	childEnded endCause = iota // Close was called
	weClosed                   // Close
	pipeClosed                 // the child has closed its input or output: it is ending, or useless
	connFault                  // the child lives, and its output cannot be trusted any more, or our code has panicked
)

// beginShutdown starts finishShutdown, once. It does not wait, so that readers and writers may call it.
func (c *connection) beginShutdown(cause endCause, err *transports.Error) {
	c.endOnce.Do(func() { go c.finishShutdown(cause, err) })
}

// finishShutdown ends the connection, in an order that keeps the promises of Sink: first the messages that the child delivered
// reach the sink, then Down is called, and then, because that takes time, everything is released.
//
//	childEnded:  drain ─> kill group ─> reap ─> Down ─> wait for the group ─> release
//	weClosed:    stopChild ─> drain ─> reap ─> Down ─> ask, then kill the group ─> release
//	otherwise:   drain ─> Down ─> stopChild ─> kill group ─> reap ─> release
func (c *connection) finishShutdown(cause endCause, err *transports.Error) {
	released := c.releaseResources
	defer func() {
		if v := recover(); v != nil {
			c.p.Group.Kill()
			c.notifyDown(errs.PanicError(v))
		}
		released()
	}()
	// killAt is the time at which the group, which was asked to end, is killed; zero if it was not asked.
	var killAt time.Time
	switch {
	case cause == weClosed:
		c.out.FailAll(err)
		// A child whose output is full may not notice that its input was closed.
		c.startSkippingPauses()
		killAt = c.stopChild()
	case cause == connFault, cause == pipeClosed && !c.exitsWithin(exitTime):
		// The cause is known, and callers need not wait for the steps that stop the child.
		c.drainOutput(0)
		c.notifyDown(err)
		killAt = c.stopChild()
	}
	// Even SIGKILL has not ended it.
	if !c.exitsWithin(0) {
		c.notifyDown(err)
		released = c.abandonChild
		return
	}
	c.drainOutput(drainTime)
	if cause != weClosed {
		// As long as the child is a zombie, no other process can have the group's id.
		c.p.Group.Kill()
	}
	exit := c.p.ReapChild()
	c.exitText.Store(&exit)
	if cause == childEnded || cause == pipeClosed {
		err = c.p.ExitError(exit)
	}
	c.notifyDown(err)
	c.endGroup(cause, killAt)
}

// stopChild makes the child end: it closes the child's input, then sends SIGTERM to the group, then kills it. It returns as soon
// as the child has ended, with the time at which the rest of the group is to be killed, zero if the group was not asked to end.
func (c *connection) stopChild() (killAt time.Time) {
	_ = c.p.Stdin.Close()
	first, last := c.grace, c.grace
	if c.fetches && !c.gotMessage.Load() {
		first, last = 0, fetchGraces*c.grace
	}
	if c.exitsWithin(first) {
		return time.Time{}
	}
	killAt = time.Now().Add(last)
	c.p.Group.Terminate()
	if !c.exitsWithin(last) {
		c.p.Group.Kill()
		c.exitsWithin(killTime)
	}
	return killAt
}

// endGroup ends the processes that the child has left behind. After Close it asks them first and gives them the same time as the
// child.
func (c *connection) endGroup(cause endCause, killAt time.Time) {
	if cause == weClosed && c.p.Group.HasMembers() {
		if killAt.IsZero() {
			killAt = time.Now().Add(c.grace)
			c.p.Group.Terminate()
		}
		if c.p.AwaitGroupEnd(time.Until(killAt), false) {
			return
		}
	}
	c.p.Group.Kill()
	c.p.AwaitGroupEnd(killTime, true)
}

// drainOutput waits until both outputs were read to their ends, for at most d, and stops the readers then: they still read what
// is in the pipes at that moment. After it, no reader calls the sink any more.
func (c *connection) drainOutput(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.drained:
		return
	case <-t.C:
	}
	c.startSkippingPauses()
	c.stdout.StopReading()
	c.stderr.StopReading()
	// Reads cannot be interrupted here: the job must end before the pipes do.
	if !pipe.Nonblocking {
		c.p.Group.Kill()
	}
	<-c.drained
}

// notifyDown gives the sink the cause, once, and ends every Send that waits.
func (c *connection) notifyDown(err *transports.Error) {
	c.out.FailAll(err)
	c.downOnce.Do(func() {
		defer func() {
			// A sink that panics in Down has no effect: the connection is ending already.
			_ = recover()
		}()
		c.sink.Down(err)
	})
}

// releaseResources closes what is left and closes released. The readers have ended; writers end when the pipes are closed.
func (c *connection) releaseResources() {
	c.p.ClosePipes()
	c.out.AwaitWriters()
	c.p.ReleaseGroup()
	c.watched.tellGone(c.grace)
	close(c.released)
}

// abandonChild is for a child that cannot be killed. It reports the connection as released, because nothing can speed this up,
// and frees what the child holds when the child ends, however long that takes.
func (c *connection) abandonChild() {
	close(c.released)
	<-c.p.Exited
	c.p.ReapChild()
	c.p.ClosePipes()
	c.p.ReleaseGroup()
	c.watched.tellGone(c.grace)
}

// exitsWithin waits until the child has ended, for at most d, and reports whether it has. With d = 0 it only looks.
func (c *connection) exitsWithin(d time.Duration) bool {
	select {
	case <-c.p.Exited:
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.p.Exited:
		return true
	case <-t.C:
		return false
	}
}
