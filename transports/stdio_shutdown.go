package transports

import "time"

const (
	// drainTime is how long the output of a child that has ended is read if something else holds it open.
	drainTime = 20 * time.Millisecond
	// exitTime is how long a child that has closed a pipe is given to end, so that the error can say how. A child that
	// ends closes its pipes a moment before it can be waited for.
	exitTime = 100 * time.Millisecond
	// fetchGraces times the grace is how long an installation has to take back what it has begun.
	fetchGraces = 4
	// killTime is how long a killed group is waited for. What is left then cannot be killed (it waits for a device), or
	// is a zombie whose parent does not reap it.
	killTime = 2 * time.Second
)

// endCause says what has begun the end of a connection. Only the first cause counts.
type endCause uint8

const (
	childEnded endCause = iota // by itself
	weClosed                   // Close
	pipeClosed                 // the child has closed its input or output; it is ending, or useless
	connFault                  // it lives, and must not be listened to any more
)

// beginShutdown begins the end, once. It does not wait.
func (c *stdioConn) beginShutdown(cause endCause, err *Error) {
	c.endOnce.Do(func() { go c.finishShutdown(cause, err) })
}

// finishShutdown ends everything, in an order that keeps the promises: first what was delivered reaches the sink, then Down is
// called, and only then, because that takes time, the rest is released.
func (c *stdioConn) finishShutdown(cause endCause, err *Error) {
	released := c.releaseResources
	defer func() {
		if v := recover(); v != nil {
			c.p.group.kill()
			c.notifyDown(panicError(v))
		}
		released()
	}()
	var killAt time.Time // when the group, which was asked to end, is killed
	switch {
	case cause == weClosed:
		c.out.failAll(err)
		c.startSkippingPauses() // a child whose output is full may not see that its input was closed
		killAt = c.stopChild()
	case cause == connFault, cause == pipeClosed && !c.exitsWithin(exitTime):
		// The truth is known, and the calls that wait need not wait for the ladder.
		c.drainOutput(0)
		c.notifyDown(err)
		killAt = c.stopChild()
	}
	if !c.exitsWithin(0) { // after SIGKILL
		c.notifyDown(err)
		released = c.abandonChild
		return
	}
	c.drainOutput(drainTime)
	if cause != weClosed {
		c.p.group.kill() // as long as the child is a zombie, no other process can have the group's id
	}
	exit := c.p.reapChild()
	c.exitText.Store(&exit)
	if cause == childEnded || cause == pipeClosed {
		err = c.p.exitError(exit)
	}
	c.notifyDown(err)
	c.endGroup(cause, killAt)
}

// stopChild makes the child end: its input is closed, then its group is asked, then killed. It returns as soon as the
// child has ended, with the time at which the rest of the group is due, zero if it was not asked.
func (c *stdioConn) stopChild() (killAt time.Time) {
	_ = c.p.stdin.Close()
	first, last := c.grace, c.grace
	if c.fetches && !c.gotMessage.Load() {
		first, last = 0, fetchGraces*c.grace
	}
	if c.exitsWithin(first) {
		return time.Time{}
	}
	killAt = time.Now().Add(last)
	c.p.group.terminate()
	if !c.exitsWithin(last) {
		c.p.group.kill()
		c.exitsWithin(killTime)
	}
	return killAt
}

// endGroup ends what the child has left behind. After Close it is asked first, as the child was.
func (c *stdioConn) endGroup(cause endCause, killAt time.Time) {
	if cause == weClosed && c.p.group.hasMembers() {
		if killAt.IsZero() {
			killAt = time.Now().Add(c.grace)
			c.p.group.terminate()
		}
		if c.p.awaitGroupEnd(time.Until(killAt), false) {
			return
		}
	}
	c.p.group.kill()
	c.p.awaitGroupEnd(killTime, true)
}

// drainOutput waits until both outputs were read to their ends, for at most d, and ends the reading then: what is in the
// pipes now is still taken.
func (c *stdioConn) drainOutput(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.drained:
		return
	case <-t.C:
	}
	c.startSkippingPauses()
	c.stdout.stopReading()
	c.stderr.stopReading()
	if !nonblocking {
		c.p.group.kill()
	}
	<-c.drained
}

// notifyDown tells the sink, once, and ends every Send that waits.
func (c *stdioConn) notifyDown(err *Error) {
	c.out.failAll(err)
	c.downOnce.Do(func() {
		defer func() {
			// A sink that panics in Down costs nothing: there is nothing left to end.
			_ = recover()
		}()
		c.sink.Down(err)
	})
}

// releaseResources closes what is left. Everybody who used it has ended.
func (c *stdioConn) releaseResources() {
	c.p.closePipes()
	c.out.writers.Wait()
	c.p.group.close()
	c.p.isolation.releaseTemp()
	c.releaseGuard()
	close(c.released)
}

// abandonChild is for a child that cannot be killed. The connection waits for it no more; what it holds is released when it ends.
func (c *stdioConn) abandonChild() {
	close(c.released)
	<-c.p.exited
	c.p.reapChild()
	c.p.closePipes()
	c.p.group.close()
	c.p.isolation.releaseTemp()
	c.releaseGuard()
}

// exitsWithin waits until the child has ended, for at most d, and reports whether it has.
func (c *stdioConn) exitsWithin(d time.Duration) bool {
	select {
	case <-c.p.exited:
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.p.exited:
		return true
	case <-t.C:
		return false
	}
}
