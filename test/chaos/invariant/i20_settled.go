package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// readSettled is the Method of the record of a wait until no server changes its phase by itself (Manager.Settled).
const readSettled = "settled"

// checkSettled judges those waits: by the answer each server stood in a phase in which it stays at some time of the wait; the
// answer comes when the last one does; and one that does not come within its time names a server that is on its way.
func (c *checker) checkSettled() {
	var open []int // the waits that have begun and not ended
	for _, i := range c.x.ServerEvents("") {
		e := c.x.Event(i)
		switch {
		case e.Method != readSettled:
		case e.Kind == history.Reading:
			open = append(open, i)
		case e.Kind == history.ReadEnd && len(open) > 0:
			k := c.settledBegin(open, e)
			begin := open[k]
			open = slices.Delete(open, k, k+1)
			if e.T < c.closeTime() {
				c.judged++
				c.checkSettledAnswer(begin, i)
			}
		}
	}
}

// settledBegin returns the index of the wait to which an end belongs: that which began when its time says, because several callers
// wait at once, and the first to begin need not be the first to end.
func (c *checker) settledBegin(open []int, end *history.Event) (k int) {
	began := end.T - end.Took
	for i := range open {
		if (c.x.Event(open[i]).T - began).Abs() < (c.x.Event(open[k]).T - began).Abs() {
			k = i
		}
	}
	return k
}

// checkSettledAnswer judges one wait for all servers, from its begin to its end: the answer may not come before each server has
// settled, nor later than shortly after the last one.
func (c *checker) checkSettledAnswer(begin, end int) {
	b, e := c.x.Event(begin), c.x.Event(end)
	if e.Class == messages.ClassTimeout {
		c.checkUnsettled(e.Name, begin, end)
		return
	}
	if e.Class != messages.ClassNone {
		c.reportViolation(e.Name, end, []int{begin}, "Who waited from %s for every server to settle was answered at %s that it cannot be: %s.", timeText(b.T),
			timeText(e.T), e.Text)
		return
	}
	moved := b.T // the last time at which a server was on its way
	for _, server := range c.x.Servers() {
		moved = max(moved, c.stuckDialEnd(server, b.T))
		var known, settled bool
		spans := c.phaseSpans(server)
		for k := range spans {
			s := &spans[k]
			if s.T > e.T+c.skew || s.to < b.T-c.skew && s.endEvent >= 0 {
				continue
			}
			known = known || s.T <= b.T
			if isSettled(s) && !(s.Phase == messages.Failed && s.Retry == "") {
				settled = true
			} else {
				moved = max(moved, min(s.to, e.T))
			}
		}
		if known && !settled && !c.removedBetween(server, b.T, e.T) {
			c.reportViolation(server, end, []int{begin}, "Who waited from %s for every server to settle was told at %s that it has, and this one was on its way all the "+
				"time.", timeText(b.T), timeText(e.T))
			return
		}
	}
	if due := moved + c.skew + c.slack; e.T > due {
		c.reportViolation("", end, []int{begin}, "Who waited from %s for every server to settle was told only at %s, and the last one had settled at %s.", timeText(b.T),
			timeText(e.T), timeText(moved))
	}
}

// checkUnsettled judges that a server for which a caller waited in vain did not stand still.
func (c *checker) checkUnsettled(server string, begin, end int) {
	e := c.x.Event(end)
	if c.stuckDialEnd(server, c.x.Event(begin).T) > e.T-settledTolerance {
		return
	}
	spans := c.phaseSpans(server)
	for k := range spans {
		s := &spans[k]
		if s.T < e.T-settledTolerance && (s.to >= e.T || s.endEvent < 0) && isSettled(s) && !(s.Phase == messages.Failed && s.Retry == "") {
			c.reportViolation(server, end, []int{begin, s.event}, "Who waited from %s for every server to settle was told at %s that this one has not, and it is %s since %s.",
				timeText(c.x.Event(begin).T), timeText(e.T), describePhase(s.Event), timeText(s.T))
			return
		}
	}
}

// settledTolerance bounds how long a server may have settled when it is still waited for.
const settledTolerance = time.Second

// removedBetween reports whether a server's removal was published between two times, or it was not there at one of them.
func (c *checker) removedBetween(server string, from, to time.Duration) bool {
	return slices.ContainsFunc(c.x.ServerEvents(server), func(i int) bool {
		e := c.x.Event(i)
		return e.T >= from-c.skew && e.T <= to+c.skew && (e.Kind == history.Removed || e.Kind == history.Command)
	})
}
