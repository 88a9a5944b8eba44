package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// silentCalls is the number of calls in a row that time out without any message of their remote server before the manager has to look whether
// the server lives.
const silentCalls = 2

// checkSilentCalls judges for I8 that the manager looks at a connection over which calls have timed out in silence: it asks the server for a sign
// of life at once, and not only when the next probe is due. Only a server that does nothing but hold calls back is judged, because what it
// receives is then recorded; and none that asks, logs or runs tasks, because not all that it says is. The calls of a server whose owner adjusts it
// are counted anew from then on.
func (c *checker) checkSilentCalls(server string, u connectedSpan) {
	conn, s := c.connOf(server, u), c.serverSpec(server)
	if c.real || conn == nil || poolOf(s.Kind) != network || s.Tasks != "" || s.Offers || s.Logs {
		return
	}
	var ended []*history.CallRecord // those that the connection carried, in the order of their ends
	for _, call := range c.x.Calls() {
		if call.Server == server && call.Begin >= 0 && len(call.Received) == 1 && len(call.Ends) > 0 && c.x.Event(call.Received[0]).Conn == conn.Conn {
			ended = append(ended, call)
		}
	}
	endOf := func(call *history.CallRecord) time.Duration { return c.x.Event(call.Ends[0]).T }
	slices.SortStableFunc(ended, func(a, b *history.CallRecord) int { return cmp.Compare(endOf(a), endOf(b)) })
	for i := silentCalls - 1; i < len(ended); i++ {
		row := ended[i+1-silentCalls : i+1]
		if slices.ContainsFunc(row, func(call *history.CallRecord) bool {
			end := c.x.Event(call.Ends[0])
			return end.Class != messages.ClassTimeout || end.Outcome != messages.OutcomeUnknown || end.Agent != "" || c.wasGivenUp(call, end.T)
		}) {
			continue
		}
		from := c.x.Event(row[0].Begin).T
		for _, call := range row {
			from = min(from, c.x.Event(call.Begin).T)
		}
		to := endOf(row[silentCalls-1])
		due := to + c.skew + c.slack
		if due >= min(u.to, c.endOfConn(conn), c.closeTime()) || c.wasCommanded(server, from, due) || c.underOtherFault(server, from-time.Second, due, []string{"hang-call"}) ||
			c.hasSpoken(conn, from, due) || c.wasPinged(conn, from-c.plan.ProbeTimeout, due) {
			continue
		}
		c.judged++
		c.reportViolationAt(due, server, row[silentCalls-1].Ends[0], []int{row[0].Begin, row[0].Ends[0], u.event}, "Calls %s and %s of tool %s timed out over connection %d, the "+
			"last at %s, and the server had said nothing since %s. The manager had to ask it for a sign of life by %s, and did not.", row[0].ID, row[silentCalls-1].ID,
			c.x.Event(row[0].Begin).Tool, conn.Conn, timeText(to), timeText(from), timeText(due))
		return
	}
}

// hasSpoken reports whether a server said anything over a connection between two times.
func (c *checker) hasSpoken(conn *history.ConnRecord, from, to time.Duration) bool {
	return slices.ContainsFunc(conn.Events, func(i int) bool {
		e := c.x.Event(i)
		return e.Kind != history.Received && e.T >= from && e.T <= to
	})
}
