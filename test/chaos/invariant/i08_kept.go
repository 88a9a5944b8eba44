package invariant

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// checkKept judges for I8 that a server which has resources or prompts is connected over a connection on which it has refused to list its tools: what
// else it has can be used. Only a server is judged to which nothing happens but that refusal.
func (c *checker) checkKept(server string, stays []phaseSpan) {
	spec := c.serverSpec(server)
	if c.real || spec == nil || !spec.Has(scenario.HasResources) && !spec.Has(scenario.HasPrompts) {
		return
	}
	for _, conn := range c.x.Conns(server) {
		refused, known := -1, false
		for _, i := range conn.Events {
			e := c.x.Event(i)
			if e.Kind == history.Answered && e.Method == "tools/list" && !known {
				known = true
				if e.Code < 0 {
					refused = i
				}
			}
		}
		open, opened := c.x.Time(conn.Open)
		if refused < 0 || !opened {
			continue
		}
		at := c.x.Event(refused).T
		due := at + c.skew + c.slack
		if due >= c.closeTime() || c.underOtherFault(server, open, due, []string{"list-error"}) || c.wasCommanded(server, open-c.slack, due) {
			continue
		}
		c.judged++
		if !slices.ContainsFunc(stays, func(s phaseSpan) bool {
			return s.Phase == messages.Connected && s.T >= at-c.skew && s.T <= due
		}) {
			c.reportViolationAt(due, server, refused, []int{conn.Open}, "The server has more than tools, and refused at %s to list those over connection %d. It is to be connected for what else "+
				"it has, and was not by %s.", timeText(at), conn.Conn, timeText(due))
			return
		}
	}
}
