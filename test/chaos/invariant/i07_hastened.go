package invariant

import "time"

// checkHastened judges that a server which waits is tried soon after its owner has said that the machine woke up: within Policy.WakeSpread,
// as soon as the gate has a slot. A server that asked for more time gets it, and one that is due by then is not brought forward.
func (c *checker) checkHastened(e *attemptEnd, wishes []wantedSince) {
	v := e.retryPhase
	if v == nil || e.retryAfter > 0 {
		return
	}
	slack := c.slack + time.Second
	if c.real {
		slack += 5 * time.Second
	}
	until := c.closeTime()
	if e.next != nil {
		until = c.x.Event(e.next.open).T
	}
	for _, w := range e.wakes {
		due := w.end + c.plan.Policy.WakeSpread
		if !w.answered || v.T > w.begin-slack || v.Next <= due+slack || until <= due+slack {
			continue
		}
		if wish, _ := wantedThroughout(wishes, e.t, until); wish != wantConnected {
			continue
		}
		at, free := c.poolFullness(poolOf(c.serverSpec(e.server).Kind)).firstFree(due, until, slack)
		if !free {
			continue
		}
		c.reportViolationAt(at, e.server, v.event, []int{e.end, w.event}, "The machine woke up at %s, and the next attempt was due at %s: it had to be brought "+
			"forward to %s. None came, though the gate had a slot at %s.", timeText(w.begin), timeText(v.Next), timeText(due), timeText(at))
		return
	}
}
