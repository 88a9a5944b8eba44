package invariant

import (
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// checkPersonal is I20 for the calls of a server whose callers have credentials of their own, of which it refuses those of some (package sim). A caller whose
// credentials are refused is told so, and its call does not reach the server with those of another. Every other call is not concerned.
func (c *checker) checkPersonal(server string) {
	if !c.serverSpec(server).Personal {
		return
	}
	for _, call := range c.x.Calls() {
		if call.Server != server || call.Begin < 0 || len(call.Ends) == 0 {
			continue
		}
		begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
		refused := scenario.RefusesCaller(begin.By)
		c.judged++
		switch {
		case refused && len(call.Received) > 0:
			c.reportViolation(server, call.Received[0], []int{call.Begin}, "The server refuses the credentials of %s, and got its call %s at %s: with those of another.", begin.By, call.ID,
				timeText(c.x.Event(call.Received[0]).T))
		case refused && end.Outcome == messages.OutcomeResult:
			c.reportViolation(server, call.Ends[0], []int{call.Begin}, "The server refuses the credentials of %s, and its call %s got a result at %s.", begin.By, call.ID, timeText(end.T))
		case !refused && end.Class == messages.ClassUnauthorized && !c.underFault(server, 0, end.T, "unauthorized", "forbidden", "rotate-token"):
			c.reportViolation(server, call.Ends[0], []int{call.Begin}, "Call %s of %s ended at %s with refused credentials, and the server refuses only those of another caller.",
				call.ID, callerName(begin), timeText(end.T))
		}
	}
}

// callerName names the caller of a call.
func callerName(begin *history.Event) string {
	if begin.By == "" {
		return "a caller without a name"
	}
	return begin.By
}
