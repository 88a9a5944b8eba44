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

// why says what has begun the end of a connection. Only the first cause counts.
type why uint8

const (
	childEnded why = iota // by itself
	weClosed              // Close
	pipeClosed            // the child has closed its input or output; it is ending, or useless
	fault                 // it lives, and must not be listened to any more
)

// end begins the end, once. It does not wait.
func (c *stdioConn) end(cause why, err *Error) {
	c.ending.Do(func() { go c.finish(cause, err) })
}

// finish ends everything, in an order that keeps the promises: first what was delivered reaches the sink, then Down is
// called, and only then, because that takes time, the rest is released.
func (c *stdioConn) finish(cause why, err *Error) {
	released := c.release
	defer func() {
		if v := recover(); v != nil {
			c.p.group.kill()
			c.down(panicError(v))
		}
		released()
	}()
	var killAt time.Time // when the group, which was asked to end, is killed
	switch {
	case cause == weClosed:
		c.out.fail(err)
		c.readOn() // a child whose output is full may not see that its input was closed
		killAt = c.ladder()
	case cause == fault, cause == pipeClosed && !c.exits(exitTime):
		// The truth is known, and the calls that wait need not wait for the ladder.
		c.drain(0)
		c.down(err)
		killAt = c.ladder()
	}
	if !c.exits(0) { // after SIGKILL
		c.down(err)
		released = c.abandon
		return
	}
	c.drain(drainTime)
	if cause != weClosed {
		c.p.group.kill() // as long as the child is a zombie, no other process can have the group's id
	}
	exit := c.p.reap()
	c.exit.Store(&exit)
	if cause == childEnded || cause == pipeClosed {
		err = c.p.exitError(exit)
	}
	c.down(err)
	c.endGroup(cause, killAt)
}

// ladder makes the child end: its input is closed, then its group is asked, then killed. It returns as soon as the
// child has ended, with the time at which the rest of the group is due, zero if it was not asked.
func (c *stdioConn) ladder() (killAt time.Time) {
	_ = c.p.stdin.Close()
	first, last := c.grace, c.grace
	if c.fetches && !c.spoke.Load() {
		first, last = 0, fetchGraces*c.grace
	}
	if c.exits(first) {
		return time.Time{}
	}
	killAt = time.Now().Add(last)
	c.p.group.terminate()
	if !c.exits(last) {
		c.p.group.kill()
		c.exits(killTime)
	}
	return killAt
}

// endGroup ends what the child has left behind. After Close it is asked first, as the child was.
func (c *stdioConn) endGroup(cause why, killAt time.Time) {
	if cause == weClosed && c.p.group.alive() {
		if killAt.IsZero() {
			killAt = time.Now().Add(c.grace)
			c.p.group.terminate()
		}
		if c.p.sweep(time.Until(killAt), false) {
			return
		}
	}
	c.p.group.kill()
	c.p.sweep(killTime, true)
}

// drain waits until both outputs were read to their ends, for at most d, and ends the reading then: what is in the
// pipes now is still taken.
func (c *stdioConn) drain(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c.drained:
		return
	case <-t.C:
	}
	c.readOn()
	c.stdout.stop()
	c.stderr.stop()
	if !nonblocking {
		c.p.group.kill()
	}
	<-c.drained
}

// down tells the sink, once, and ends every Send that waits.
func (c *stdioConn) down(err *Error) {
	c.out.fail(err)
	c.told.Do(func() {
		defer func() {
			// A sink that panics in Down costs nothing: there is nothing left to end.
			_ = recover()
		}()
		c.sink.Down(err)
	})
}

// release closes what is left. Everybody who used it has ended.
func (c *stdioConn) release() {
	c.p.closePipes()
	c.out.writers.Wait()
	c.p.group.close()
	c.p.isolated.release()
	c.guard()
	close(c.released)
}

// abandon is for a child that cannot be killed. The connection waits for it no more; what it holds is released when it ends.
func (c *stdioConn) abandon() {
	close(c.released)
	<-c.p.exited
	c.p.reap()
	c.p.closePipes()
	c.p.group.close()
	c.p.isolated.release()
	c.guard()
}

// exits waits until the child has ended, for at most d, and reports whether it has.
func (c *stdioConn) exits(d time.Duration) bool {
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
