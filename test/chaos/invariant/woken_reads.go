package invariant

import (
	"github.com/mcpvisor/mcpvisor/messages"
)

// checkReadWakes is I20 for prompts and completions of a lazy server that rests: to read one is a use, and wakes it as a call does.
func (c *checker) checkReadWakes(server string, begin, end int) {
	b, e := c.x.Event(begin), c.x.Event(end)
	if e.Method != "prompt" && e.Method != "complete" || c.plan.Denies(server) || e.T >= c.closeTime() {
		return
	}
	stay := c.spanAt(c.phaseSpans(server), b.T-c.skew)
	if stay == nil || nodeOf(stay) != resting || stay.to <= b.T {
		return
	}
	if _, found := c.commandIn(c.ownerCommands(server), b.T-c.skew, e.T+c.skew); found {
		return
	}
	c.judged++
	if e.Class != messages.ClassNone && e.Class != messages.ClassCanceled && stay.to > e.T+c.skew {
		c.reportViolation(server, end, []int{stay.event, begin}, "The server rested since %s, and was asked for a %s at %s. The caller got an error at %s (%s), and the server was not woken.",
			timeText(stay.T), e.Method, timeText(b.T), timeText(e.T), e.Class)
	}
}
