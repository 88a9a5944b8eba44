package invariant

import "github.com/mcpvisor/mcpvisor/messages"

// checkRestInUse judges for I8 that a lazy server goes to rest only while no call that it has received is in flight.
func (c *checker) checkRestInUse(server string, stays []phaseSpan, commands []ownerCommand) {
	if !c.isLazy(server, 0, c.endTime()) {
		return
	}
	for i := 1; i < len(stays); i++ {
		s := &stays[i]
		// Only the edge from connected to resting lets a connection go.
		if nodeOf(s) != resting || stays[i-1].endEvent != s.event || nodeOf(&stays[i-1]) != connectedNode {
			continue
		}
		// A command may have ended the connection for its own reason.
		if _, found := c.commandIn(commands, s.T-c.slack, s.T); found {
			continue
		}
		if !c.isLazy(server, s.T-c.slack, s.T) {
			c.reportViolation(server, s.event, []int{stays[i-1].event}, "The server was let go at %s, and by its owner's last word it is not lazy.", timeText(s.T))
			return
		}
		for _, call := range c.x.Calls() {
			if call.Server != server || len(call.Received) == 0 || len(call.Ends) == 0 {
				continue
			}
			received, end := c.x.Event(call.Received[len(call.Received)-1]), c.x.Event(call.Ends[0])
			// One that has lost its answer to a fault is in use of nothing: it waits for what comes after this connection.
			if end.Class == messages.ClassNetwork && end.Outcome == messages.OutcomeUnknown && c.underFault(server, received.T, s.T) {
				continue
			}
			// A call that overlaps the edge by more than the delay of a record was in use for sure.
			if received.T >= stays[i-1].T && received.T < s.T-c.serverDelay() && end.T > s.T+c.serverDelay() {
				c.reportViolation(server, s.event, []int{call.Begin, call.Received[0], call.Ends[0]}, "The server was let go at %s because nobody used "+
					"it, and call %s was under way from %s to %s.", timeText(s.T), call.ID, timeText(received.T), timeText(end.T))
				return
			}
		}
	}
}
