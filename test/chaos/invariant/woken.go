package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// wakeBound is how long a call may wait before it wakes a server that rests: a function of the program may hold it.
const wakeBound = time.Second

// checkWoken is I2 for calls to a lazy server that rests: the first one has it connected, at once, and goes on with its connection. Nothing
// else bounds a call of a lazy server that has no deadline of its own.
func (c *checker) checkWoken() {
	rests := map[string][]phaseSpan{}
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || c.spec[call.Server] == nil {
			continue
		}
		begin := c.x.Event(call.Begin)
		// What an agent asks may be held by its window, and by what it does not read.
		if begin.Agent != "" || c.underFault("", begin.T, begin.T+wakeBound) {
			continue
		}
		if _, known := rests[call.Server]; !known {
			rests[call.Server] = c.restingSpans(call.Server)
		}
		due := begin.T + wakeBound + c.slack
		for _, s := range rests[call.Server] {
			if s.T > begin.T-c.skew || s.to <= due || c.hasEndedBy(call, due) || due >= c.closeTime() {
				continue
			}
			c.judged++
			c.reportViolationAt(due, call.Server, call.Begin, []int{s.event}, "Call %s of tool %s began at %s while its server rested, and had to wake it by %s. The "+
				"server rested from %s to %s, and the call waited.", call.ID, begin.Tool, timeText(begin.T), timeText(due), timeText(s.T), timeText(s.to))
			return
		}
	}
}

// hasEndedBy reports whether a call had ended at a time, or its caller had given it up.
func (c *checker) hasEndedBy(call *history.CallRecord, t time.Duration) bool {
	return len(call.Ends) > 0 && c.x.Event(call.Ends[0]).T <= t || c.wasGivenUp(call, t)
}

// restingSpans returns the spans in which a server rested.
func (c *checker) restingSpans(server string) (rests []phaseSpan) {
	for _, s := range c.phaseSpans(server) {
		if nodeOf(&s) == resting {
			rests = append(rests, s)
		}
	}
	return rests
}
