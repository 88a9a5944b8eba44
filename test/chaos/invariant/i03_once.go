package invariant

import (
	"fmt"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I3: a call reaches the connection that it was admitted to and no other, and what runs at the server is what its caller is told.
//
//   - It is executed at most once. Twice only if the server is trusted and marks the tool read-only or idempotent.
//   - It is sent a second time only in that case, or if the server refused the first one before running it.
//   - What did not run is not told as unknown: see refused.
//   - Not sent and rejected mean that it did not run; a result comes from the execution and the connection that it names.
//   - All results of a server together are those of one counter that was used one call after the other, over connections that
//     followed each other: see serial.
var once = check("I3", "calls and their executions",
	"No call reaches another epoch than it was admitted to; a non-idempotent call is executed at most once.",
	"No call reached a server.",
	func(c *court) {
		for _, call := range c.x.Calls() {
			if len(call.Executed) == 0 && len(call.Received) == 0 && len(call.Ends) == 0 {
				continue
			}
			c.looked++
			if call.Begin < 0 {
				if len(call.Executed) > 0 {
					c.violated(call.Server, call.Executed[0], nil, "Call %s was executed at %s and nobody called it.", call.ID,
						clock(c.x.Event(call.Executed[0]).T))
				}
				continue
			}
			if c.ranOnce(call) {
				c.sentOnce(call)
			}
			c.admitted(call)
			c.toldTrue(call)
			c.refused(call)
		}
		c.serial()
	})

func (c *court) tool(call *history.CallRecord) string { return c.x.Event(call.Begin).Tool }

// ranOnce counts the executions. What ran too often is not told a second time because it was sent too often.
func (c *court) ranOnce(call *history.CallRecord) bool {
	tool := c.tool(call)
	most := 1
	if c.repeats(call.Server, tool) {
		most = 2
	}
	for n, i := range call.Executed {
		e := c.x.Event(i)
		if conn := c.connection(call.Server, e.Conn); conn != nil && conn.Down >= 0 && e.T > c.x.Event(conn.Down).T+c.slower() &&
			c.server(call.Server).Kind != messages.HTTP { // a server of HTTP that was started again goes on where it was
			c.violated(call.Server, i, []int{call.Begin, conn.Down}, "Call %s was executed at %s on connection %d, which had ended at %s.",
				call.ID, clock(e.T), e.Conn, clock(c.x.Event(conn.Down).T))
		}
		if n < most {
			continue
		}
		why := "It may run once, because the server is not trusted"
		switch {
		case most == 2:
			why = "It may be repeated once"
		case c.server(call.Server).Trusted:
			why = "It may run once, because the tool is neither read-only nor idempotent"
		}
		c.violated(call.Server, i, append([]int{call.Begin}, call.Executed[:n]...), "A caller made call %s of tool %s once, at %s, and it ran %d "+
			"times: %s. %s.%s", call.ID, tool, clock(c.x.Event(call.Begin).T), n+1, c.places(call.Executed[:n+1]), why,
			c.between(call.Server, call.Executed[n-1], i))
		return false
	}
	return true
}

// places says where and when events of a call happened: "on connection 1 at 5s and on connection 2 at 7s".
func (c *court) places(events []int) string {
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
		text += fmt.Sprintf("on connection %d at %s", e.Conn, clock(e.T))
	}
	return text
}

// between says what had become of the connection of the first of two events of a call before the second.
func (c *court) between(server string, first, second int) string {
	a, b := c.x.Event(first), c.x.Event(second)
	conn := c.connection(server, a.Conn)
	if a.Conn == b.Conn || conn == nil || conn.Down < 0 {
		return ""
	}
	down := c.x.Event(conn.Down)
	if down.T > b.T {
		return fmt.Sprintf(" Connection %d had not ended yet.", a.Conn)
	}
	return fmt.Sprintf(" Connection %d had ended at %s (%s).", a.Conn, clock(down.T), reason(down))
}

// sentOnce judges what was sent again, whether it ran or not: "Nothing that may already have run is replayed".
func (c *court) sentOnce(call *history.CallRecord) {
	for n := 1; n < len(call.Received); n++ {
		before, e := c.x.Event(call.Received[n-1]), c.x.Event(call.Received[n])
		refused := false
		for _, i := range call.Answered {
			a := c.x.Event(i)
			refused = refused || a.Code != 0 && a.T >= before.T && a.T <= e.T
		}
		if refused && n <= 2 || c.repeats(call.Server, c.tool(call)) && n == 1 {
			continue
		}
		c.violated(call.Server, call.Received[n], append([]int{call.Begin}, call.Received[:n]...), "A caller made call %s of tool %s once, at "+
			"%s, and it was sent %d times: %s. Before the last time the server had not refused it, so it may have run already.%s", call.ID,
			c.tool(call), clock(c.x.Event(call.Begin).T), n+1, c.places(call.Received[:n+1]), c.between(call.Server, call.Received[n-1],
				call.Received[n]))
		return
	}
}

// admitted judges that a call went to a connection that was there when it began. Another one is right if the call may
// wait for it (CallWait, a lazy server), or if the first one refused it.
func (c *court) admitted(call *history.CallRecord) {
	if len(call.Received) != 1 || c.plan.CallWait > 0 || c.isLazy(call.Server, c.x.Event(call.Begin).T, c.end()) {
		return
	}
	begin, e := c.x.Event(call.Begin), c.x.Event(call.Received[0])
	conn := c.connection(call.Server, e.Conn)
	if conn == nil || conn.Open < 0 || e.T-begin.T <= c.moment {
		return
	}
	if open := c.x.Event(conn.Open); open.T > begin.T+c.moment {
		if _, yes := c.forgotten(call.Server, begin.T, open.T); yes {
			return
		}
		c.violated(call.Server, call.Received[0], []int{call.Begin, conn.Open}, "Call %s of tool %s began at %s, before connection %d was "+
			"opened at %s, and reached it at %s: it was admitted to another epoch, or to none.", call.ID, begin.Tool, clock(begin.T), e.Conn,
			clock(open.T), clock(e.T))
	}
}

// forgotten is when a server's session was forgotten between two times: the server ended it, did not know it in its answer to any request
// (404), or the manager says that it was connected until then. A call that was admitted to it and not written goes to the next connection once, if that comes soon enough
// (actors.Calls.RetryWait). One that begins later does not wait.
func (c *court) forgotten(server string, from, to time.Duration) (lost time.Duration, yes bool) {
	up := false
	for _, i := range c.x.Of(server) {
		e := c.x.Event(i)
		if e.T > to {
			break
		}
		said := e.Side == history.Manager && e.Kind == history.Phase
		named := e.Class == messages.ClassSession && (e.Kind == history.Down || said && up)
		if (named || e.Kind == history.Answered && e.Code == http.StatusNotFound) && e.T >= from-c.atOnce() {
			lost, yes = e.T, true
		}
		if said {
			up = e.Phase == messages.Connected
		}
	}
	return lost, yes
}

// toldTrue compares the outcome with what the server did.
func (c *court) toldTrue(call *history.CallRecord) {
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
			c.violated(call.Server, at, evidence, "Call %s of tool %s ended with %s, and the server executed it at %s on connection %d: who "+
				"calls again runs it twice.", call.ID, end.Tool, end.Outcome, clock(run.T), run.Conn)
			return
		}
		if end.Outcome == messages.OutcomeNotSent {
			c.notSent(call, end, at)
		}
	case messages.OutcomeResult:
		own := false
		for _, i := range call.Executed {
			run := c.x.Event(i)
			own = own || (end.Value == 0 || run.Value == end.Value) && (end.Conn == 0 || run.Conn == end.Conn)
		}
		switch {
		case len(call.Executed) == 0:
			c.violated(call.Server, at, evidence, "Call %s of tool %s ended with a result at %s, and no server executed it.", call.ID, end.Tool,
				clock(end.T))
		case !own:
			run := c.x.Event(call.Executed[len(call.Executed)-1])
			c.violated(call.Server, at, evidence, "The caller of call %s of tool %s was given, at %s, the result of execution %d on "+
				"connection %d. The server had executed this call as number %d on connection %d, at %s.", call.ID, end.Tool, clock(end.T),
				end.Value, end.Conn, run.Value, run.Conn, clock(run.T))
		}
	}
}

// notSent judges a call of which no byte was written, by its outcome. A server may have refused it before it ran.
func (c *court) notSent(call *history.CallRecord, end *history.Event, at int) {
	refused := 0
	for _, i := range call.Answered {
		if c.x.Event(i).Code != 0 {
			refused++
		}
	}
	if len(call.Received) > refused {
		i := call.Received[len(call.Received)-1]
		c.violated(call.Server, at, []int{call.Begin, i}, "Call %s of tool %s ended with not-sent, and the server received it at %s and did "+
			"not refuse it.", call.ID, end.Tool, clock(c.x.Event(i).T))
	}
}
