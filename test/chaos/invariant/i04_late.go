package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// cancelBound is how long a cancellation may take: it is written in the background, within 5 s.
const cancelBound = 5 * time.Second

// I4: what is said to a server about a call after its caller has left. Nothing is sent any more: neither a first request nor
// a repetition. And the one thing that must be said is said: that nobody waits, if the caller left because the time had
// passed and the session lives on. That belongs here, and not to I2, because it is the other half of the same rule: the
// server must be able to rely on what it hears about who waits.
//
// Over streamable HTTP in the modern era the end of the exchange is the cancellation, and no message is due.
var lateSendCheck = newCheck("I4", "nothing is sent for a caller who has left",
	"No request is first written after its caller has an outcome; a call that was given up is cancelled at its server.",
	"No call of a server was received and ended.",
	func(c *checker) {
		givenUp := map[string][]*history.CallRecord{} // up, by server
		for _, call := range c.x.Calls() {
			if call.Begin < 0 || len(call.Ends) == 0 || len(call.Received) == 0 {
				continue
			}
			c.judged++
			end := c.x.Event(call.Ends[0])
			for n, i := range call.Received {
				e := c.x.Event(i)
				if e.T <= end.T+c.serverDelay() || c.real && c.underFault(call.Server, end.T, e.T, slowReadFaults...) {
					continue
				}
				what := "was first sent to its server"
				if n > 0 {
					what = "was sent again"
				}
				c.reportViolation(call.Server, i, []int{call.Begin, call.Ends[0]}, "Call %s of tool %s ended at %s with %s, and %s at %s.", call.ID,
					end.Tool, timeText(end.T), end.Outcome, what, timeText(e.T))
			}
			if end.Outcome == messages.OutcomeUnknown && (end.Class == messages.ClassTimeout || end.Class == messages.ClassCanceled) {
				givenUp[call.Server] = append(givenUp[call.Server], call)
			}
		}
		for _, server := range c.x.Servers() {
			c.checkCancellation(server, givenUp[server])
		}
	})

// checkCancellation judges that each call that was given up on a connection that lived on was followed by a cancellation there.
func (c *checker) checkCancellation(server string, givenUp []*history.CallRecord) {
	s := c.serverSpec(server)
	if len(givenUp) == 0 || s.Era == messages.EraModern && poolOf(s.Kind) == network && s.Kind != messages.WebSocket && s.Kind != messages.SSE {
		return
	}
	cancels := map[int][]int{}
	for _, i := range c.x.ServerEvents(server) {
		if e := c.x.Event(i); e.Kind == history.Received && (e.Method == "notifications/cancelled" || e.Method == "tasks/cancel") {
			cancels[e.Conn] = append(cancels[e.Conn], i)
		}
	}
	slices.SortStableFunc(givenUp, func(a, b *history.CallRecord) int {
		return int(c.x.Event(a.Ends[0]).T - c.x.Event(b.Ends[0]).T)
	})
	closing := c.closeTime()
	for _, call := range givenUp {
		end := c.x.Event(call.Ends[0])
		last := call.Received[len(call.Received)-1]
		conn := c.connByNumber(server, c.x.Event(last).Conn)
		until := end.T + cancelBound + c.slack
		if conn == nil || until > closing || c.underFault(server, c.x.Event(last).T, until, unheardCancelFaults...) || c.answeredBefore(call, end.T) || s.Tasks != "" && len(call.Executed) > 0 { // a task that has ended needs no end
			continue
		}
		if t, ok := c.x.Time(conn.Down); ok && t <= until {
			continue
		}
		if t, ok := c.x.Time(conn.Released); ok && t <= until {
			continue
		}
		connCancels := cancels[conn.Conn]
		for len(connCancels) > 0 && c.x.Event(connCancels[0]).T < end.T-c.skew {
			connCancels = connCancels[1:] // that of another request
		}
		if len(connCancels) == 0 || c.x.Event(connCancels[0]).T > until {
			c.reportViolation(server, call.Ends[0], []int{call.Begin, last}, "Call %s of tool %s was given up at %s while connection %d lived on, and "+
				"its server was never told (notifications/cancelled).", call.ID, end.Tool, timeText(end.T), conn.Conn)
			continue
		}
		cancels[conn.Conn] = connCancels[1:]
	}
}

// unheardCancelFaults are the faults under which a server does not see what is written to it, or the other side does not write.
var unheardCancelFaults = append(slices.Clone(slowReadFaults), "silent-discover", "era-flip", "unauthorized", "forbidden", "server-error", "redirect",
	"wrong-content-type", "truncate", "cut-stream", "lose-session", "stale-session-400")

// answeredBefore reports whether the server had answered a call by then: there was nothing to cancel.
func (c *checker) answeredBefore(call *history.CallRecord, t time.Duration) bool {
	return slices.ContainsFunc(call.Answered, func(i int) bool { return c.x.Event(i).T <= t+c.skew })
}
