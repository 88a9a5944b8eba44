package invariant

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I3: a call reaches the connection to which it was admitted and no other, and its outcome agrees with what the server did.
//
//   - It is executed at most once; twice only if the server is trusted and marks the tool read-only or idempotent.
//   - It is sent a second time only in that case, or if the server refused the first one before running it.
//   - It is not sent a second time once a question about it was answered (see checkAskedTwice).
//   - A call that did not run does not end with an unknown outcome (see checkRefusedCall).
//   - Not sent and rejected mean that it did not run; a result comes from the execution and the connection that it names.
//   - All results of a server together are those of one counter that was used one call after the other, over connections that
//     followed each other (see checkSerialOrder).
var onceCheck = newCheck("I3", "calls and their executions",
	"No call reaches another epoch than it was admitted to; a non-idempotent call is executed at most once.",
	"No call reached a server.",
	func(c *checker) {
		for _, call := range c.x.Calls() {
			if len(call.Executed) == 0 && len(call.Received) == 0 && len(call.Ends) == 0 {
				continue
			}
			c.judged++
			if call.Begin < 0 {
				if len(call.Executed) > 0 {
					c.reportViolation(call.Server, call.Executed[0], nil, "Call %s was executed at %s and nobody called it.", call.ID,
						timeText(c.x.Event(call.Executed[0]).T))
				}
				continue
			}
			if c.checkExecutions(call) {
				c.checkSends(call)
			}
			c.checkAskedTwice(call)
			c.checkAdmission(call)
			c.checkOutcome(call)
			c.checkRefusedCall(call)
		}
		c.checkSerialOrder()
	})

// toolOf returns the tool of a call.
func (c *checker) toolOf(call *history.CallRecord) string { return c.x.Event(call.Begin).Tool }

// checkExecutions counts the executions of a call. It returns false after a violation, so that a call that ran too often is not
// reported again for being sent too often.
func (c *checker) checkExecutions(call *history.CallRecord) bool {
	tool := c.toolOf(call)
	most := 1
	if c.mayRepeat(call.Server, tool) {
		most = 2
	}
	for n, i := range call.Executed {
		e := c.x.Event(i)
		if conn := c.connByNumber(call.Server, e.Conn); conn != nil && conn.Down >= 0 && e.T > c.x.Event(conn.Down).T+c.serverDelay() &&
			// A restarted server over HTTP continues at the same address.
			c.serverSpec(call.Server).Kind != messages.HTTP {
			c.reportViolation(call.Server, i, []int{call.Begin, conn.Down}, "Call %s was executed at %s on connection %d, which had ended at %s.",
				call.ID, timeText(e.T), e.Conn, timeText(c.x.Event(conn.Down).T))
		}
		if n < most {
			continue
		}
		why := "It may run once, because the server is not trusted"
		switch {
		case most == 2:
			why = "It may be repeated once"
		case c.serverSpec(call.Server).Trusted:
			why = "It may run once, because the tool is neither read-only nor idempotent"
		}
		c.reportViolation(call.Server, i, append([]int{call.Begin}, call.Executed[:n]...), "A caller made call %s of tool %s once, at %s, and it ran %d "+
			"times: %s. %s.%s", call.ID, tool, timeText(c.x.Event(call.Begin).T), n+1, c.placesText(call.Executed[:n+1]), why,
			c.connEndText(call.Server, call.Executed[n-1], i))
		return false
	}
	return true
}

// placesText says where and when events of a call happened: "on connection 1 at 5s and on connection 2 at 7s".
func (c *checker) placesText(events []int) string {
	text := ""
	for n, i := range events {
		e := c.x.Event(i)
		switch {
		case n == 0:
		case n == len(events)-1:
			text += " and "
		default:
			text += ", "
		}
		text += fmt.Sprintf("on connection %d at %s", e.Conn, timeText(e.T))
	}
	return text
}

// connEndText says whether the connection of the first of two events had ended before the second.
func (c *checker) connEndText(server string, first, second int) string {
	a, b := c.x.Event(first), c.x.Event(second)
	conn := c.connByNumber(server, a.Conn)
	if a.Conn == b.Conn || conn == nil || conn.Down < 0 {
		return ""
	}
	down := c.x.Event(conn.Down)
	if down.T > b.T {
		return fmt.Sprintf(" Connection %d had not ended yet.", a.Conn)
	}
	return fmt.Sprintf(" Connection %d had ended at %s (%s).", a.Conn, timeText(down.T), endReason(down))
}

// checkSends judges repeated sends, whether the call ran or not: "Nothing that may already have run is replayed".
func (c *checker) checkSends(call *history.CallRecord) {
	lost := 0 // the sends that may have run
	for n := 1; n < len(call.Received); n++ {
		before, e := c.x.Event(call.Received[n-1]), c.x.Event(call.Received[n])
		refused := false
		for _, i := range call.Answered {
			a := c.x.Event(i)
			refused = refused || a.Code != 0 && a.T >= before.T && a.T <= e.T
		}
		if refused && n <= 2 {
			continue
		}
		// A call that was refused first, and then lost, is made again once as well.
		if lost++; lost == 1 && n <= 2 && c.mayRepeat(call.Server, c.toolOf(call)) {
			continue
		}
		c.reportViolation(call.Server, call.Received[n], append([]int{call.Begin}, call.Received[:n]...), "A caller made call %s of tool %s once, at "+
			"%s, and it was sent %d times: %s. Before the last time the server had not refused it, so it may have run already.%s", call.ID,
			c.toolOf(call), timeText(c.x.Event(call.Begin).T), n+1, c.placesText(call.Received[:n+1]), c.connEndText(call.Server, call.Received[n-1],
				call.Received[n]))
		return
	}
}

// checkAdmission judges that a call went to a connection that existed when the call began. Another connection is right if the
// call may wait for it (CallWait, a lazy server), or if the first one refused it.
func (c *checker) checkAdmission(call *history.CallRecord) {
	if len(call.Received) != 1 || c.plan.CallWait > 0 || c.isLazy(call.Server, c.x.Event(call.Begin).T, c.endTime()) {
		return
	}
	begin, e := c.x.Event(call.Begin), c.x.Event(call.Received[0])
	conn := c.connByNumber(call.Server, e.Conn)
	if conn == nil || conn.Open < 0 || e.T-begin.T <= c.skew {
		return
	}
	if open := c.x.Event(conn.Open); open.T > begin.T+c.skew {
		if _, yes := c.sessionLostAt(call.Server, begin.T, open.T); yes {
			return
		}
		c.reportViolation(call.Server, call.Received[0], []int{call.Begin, conn.Open}, "Call %s of tool %s began at %s, before connection %d was "+
			"opened at %s, and reached it at %s: it was admitted to another epoch, or to none.", call.ID, begin.Tool, timeText(begin.T), e.Conn,
			timeText(open.T), timeText(e.T))
	}
}

// sessionLostAt returns when a server's session was lost between two times: the server ended it, answered any request with 404,
// or the manager says that it was connected until then. A call that was admitted to it and not written goes to the next
// connection once, if that comes soon enough (actors.Calls.RetryWait); a call that begins later does not wait.
func (c *checker) sessionLostAt(server string, from, to time.Duration) (lost time.Duration, yes bool) {
	up := false
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.T > to {
			break
		}
		said := e.Side == history.Manager && e.Kind == history.Phase
		named := e.Class == messages.ClassSession && (e.Kind == history.Down || said && up)
		if (named || e.Kind == history.Answered && e.Code == http.StatusNotFound) && e.T >= from-c.instantBound() {
			lost, yes = e.T, true
		}
		if said {
			up = e.Phase == messages.Connected
		}
	}
	return lost, yes
}

// checkOutcome compares the outcome with what the server did.
func (c *checker) checkOutcome(call *history.CallRecord) {
	if len(call.Ends) == 0 {
		return
	}
	at := call.Ends[0]
	end := c.x.Event(at)
	evidence := append([]int{call.Begin}, call.Executed...)
	switch end.Outcome {
	case messages.OutcomeNotSent, messages.OutcomeRejected:
		if len(call.Executed) > 0 {
			run := c.x.Event(call.Executed[0])
			c.reportViolation(call.Server, at, evidence, "Call %s of tool %s ended with %s, and the server executed it at %s on connection %d: a "+
				"caller who believes that calls again, and it runs twice.", call.ID, end.Tool, end.Outcome, timeText(run.T), run.Conn)
			return
		}
		if end.Outcome == messages.OutcomeNotSent {
			c.checkNotSent(call, end, at)
		}
	case messages.OutcomeResult:
		own := false
		for _, i := range call.Executed {
			run := c.x.Event(i)
			own = own || (end.Value == 0 || run.Value == end.Value) && (end.Conn == 0 || run.Conn == end.Conn)
		}
		switch {
		case len(call.Executed) == 0:
			c.reportViolation(call.Server, at, evidence, "Call %s of tool %s ended with a result at %s, and no server executed it.", call.ID, end.Tool,
				timeText(end.T))
		case !own:
			run := c.x.Event(call.Executed[len(call.Executed)-1])
			c.reportViolation(call.Server, at, evidence, "The caller of call %s of tool %s was given, at %s, the result of execution %d on "+
				"connection %d. The server had executed this call as number %d on connection %d, at %s.", call.ID, end.Tool, timeText(end.T),
				end.Value, end.Conn, run.Value, run.Conn, timeText(run.T))
		}
	}
}

// checkNotSent judges a call that by its outcome was never written. Its server may have refused it before it ran.
func (c *checker) checkNotSent(call *history.CallRecord, end *history.Event, at int) {
	refused := 0
	for _, i := range call.Answered {
		if c.x.Event(i).Code != 0 {
			refused++
		}
	}
	if len(call.Received) > refused {
		i := call.Received[len(call.Received)-1]
		c.reportViolation(call.Server, at, []int{call.Begin, i}, "Call %s of tool %s ended with not-sent, and the server received it at %s and did "+
			"not refuse it.", call.ID, end.Tool, timeText(c.x.Event(i).T))
	}
}
