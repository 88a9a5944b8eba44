package invariant

import "time"

// checkQueued judges that a server that waits for the start gate is let through when the gate has a slot for it. It may wait for
// the end of its own old connection first, and for a dial that does not come back.
func (c *checker) checkQueued(server string) {
	if c.real {
		return // the servers see later than the gate that a slot is free
	}
	stays := c.phaseSpans(server)
	if c.neverDialed(stays) {
		return
	}
	slack := c.slack + time.Second
	for i := range stays {
		s := &stays[i]
		until := min(s.to, c.closeTime())
		if s.endEvent < 0 {
			until = c.closeTime()
		}
		if nodeOf(s) != queued || until <= s.T+slack || c.underFault("", s.T, until) {
			continue
		}
		due := max(c.stuckDialEnd(server, s.T), c.lastRelease(server, s.T))
		if until <= due+slack {
			continue
		}
		c.judged++
		at, free := c.poolFullness(poolOf(c.serverSpec(server).Kind)).firstFree(due, until, slack)
		if free {
			c.reportViolationAt(at+slack, server, s.event, nil, "The server has waited for the start gate since %s, and still did at %s, although a slot of the gate has been free since %s: it "+
				"was not let through, or a slot was not given back.", timeText(s.T), timeText(at+slack), timeText(at))
			return
		}
	}
}

// lastRelease returns when nothing was left of the connections that were opened before a time; the end of the history if
// something always was.
func (c *checker) lastRelease(server string, t time.Duration) time.Duration {
	last := t
	for _, conn := range c.x.Conns(server) {
		if open, began := c.x.Time(conn.Open); !began || open > t || conn.Refused >= 0 {
			continue
		}
		released, over := c.x.Time(conn.Released)
		if !over {
			released = c.endTime()
		}
		last = max(last, released)
	}
	return last
}
