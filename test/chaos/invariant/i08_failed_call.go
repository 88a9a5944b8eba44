package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// deadNow are the faults whose servers refuse at once what they are sent: a connection that has ended so hides nothing.
var deadNow = []string{"crash", "reset", "refuse", "crash-loop", "exit-after-list", "list-changed", "tool-error", "hang-call"}

// checkFailedCall judges for I8 that the manager looks at a connection when a call over it could not reach the server: if the
// server has ended and refuses everything, it is not published as connected any more. Without a call the end of a server over
// HTTP may go unnoticed until the next probe.
func (c *checker) checkFailedCall(server string, u connectedSpan) {
	conn := c.connOf(server, u)
	if c.real || conn == nil || poolOf(c.serverSpec(server).Kind) != network {
		return
	}
	dead, endEvent, _ := c.deadSince(server, conn)
	if endEvent < 0 || dead > u.to {
		return
	}
	for _, call := range c.x.Calls() {
		if call.Server != server || call.Begin < 0 || len(call.Ends) == 0 {
			continue
		}
		begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
		due := end.T + c.skew + c.slack
		if begin.T <= dead || end.Class != messages.ClassNetwork || due >= min(u.to, c.closeTime()) || c.underOtherFault(server, dead-time.Second, due, deadNow) {
			continue
		}
		// A ping that was sent a moment before its server ended is waited for first.
		if c.wasPinged(conn, dead-c.plan.ProbeTimeout, dead) {
			continue
		}
		c.judged++
		c.reportViolationAt(due, server, endEvent, []int{call.Begin, call.Ends[0], u.event}, "Connection %d ended at %s, and call %s of tool %s could not reach the server at "+
			"%s. The manager said that the server is connected until %s: it had to look at once, by %s.", conn.Conn, timeText(dead), call.ID, begin.Tool, timeText(end.T),
			timeText(min(u.to, c.closeTime())), timeText(due))
		return
	}
}

// wasPinged reports whether a connection received a ping, or the question that stands for one in the modern era, between two times.
func (c *checker) wasPinged(conn *history.ConnRecord, from, to time.Duration) bool {
	for _, i := range conn.Events {
		if e := c.x.Event(i); e.Kind == history.Received && (e.Method == "ping" || e.Method == "server/discover") && e.T >= from && e.T <= to {
			return true
		}
	}
	return false
}
