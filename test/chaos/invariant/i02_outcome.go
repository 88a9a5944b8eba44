package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

const (
	// onTime is how far from its deadline a call may end: R1, "timeout error at deadline ±100 ms".
	onTime = 100 * time.Millisecond
	// longestCall bounds a call whatever progress it makes: messages.Spec.MaxCallTimeout, 10 min.
	longestCall = 10 * time.Minute
	longest     = "the longest time of a call"
	// deathBound is how long a call may go on after its server's end could be seen. On a child's exit its standard output is
	// drained to its end or for 20 ms, and given up after 1 s if a grandchild holds it; then every waiting call ends.
	deathBound = 1500 * time.Millisecond
	outputTime = 20 * time.Millisecond
)

// words are the outcomes that there are.
var words = []messages.Outcome{
	messages.OutcomeResult, messages.OutcomeToolError, messages.OutcomeRejected, messages.OutcomeNotSent, messages.OutcomeUnknown,
}

// I2: every call that was accepted ends once: not never, not twice, not later than its deadline, not before it by a clock,
// and soon after the connection that carries it has died; at the earliest moment at which the truth is known, see earliest. The
// result that it is given is its own.
var outcomes = check("I2", "one outcome per call",
	"Every accepted call has exactly one outcome, at the earliest moment at which it is known: when it is answered, when its connection "+
		"has died, when its caller gives it up, at the latest at its deadline.",
	"No tool was called.",
	func(c *court) {
		ran := c.executions()
		for _, call := range c.x.Calls() {
			if call.Begin < 0 {
				if len(call.Ends) > 0 {
					c.looked++
					c.violated(call.Server, call.Ends[0], nil, "Call %s ended at %s, and nobody had made it.", call.ID,
						clock(c.x.Event(call.Ends[0]).T))
				}
				continue
			}
			c.left(call)
			if len(call.Ends) == 0 {
				c.endless(call)
				continue
			}
			c.looked++
			if len(call.Ends) > 1 {
				first, second := c.x.Event(call.Ends[0]), c.x.Event(call.Ends[1])
				c.violated(call.Server, call.Ends[1], []int{call.Begin, call.Ends[0]}, "Call %s of tool %s ended twice: with %s at %s and "+
					"with %s at %s.", call.ID, first.Tool, first.Outcome, clock(first.T), second.Outcome, clock(second.T))
			}
			c.ended(call)
			c.diedWith(call)
			c.earliest(call)
			c.ownResult(call, ran)
		}
		c.waited()
		c.released()
	})

// endless judges a call without an end: it is fine as long as its time has not passed and the manager has not closed.
func (c *court) endless(call *history.CallRecord) {
	begin := c.x.Event(call.Begin)
	bound, by := c.callBound(begin)
	switch {
	case c.hasClosed():
		c.looked++
		c.violated(call.Server, call.Begin, call.Received, "Call %s of tool %s began at %s and has no outcome, and the manager has "+
			"closed.", call.ID, begin.Tool, clock(begin.T))
	case bound > 0 && c.end() > bound+onTime+c.late:
		c.looked++
		c.violated(call.Server, call.Begin, call.Received, "Call %s of tool %s began at %s and has no outcome at %s: %s had passed "+
			"at %s.", call.ID, begin.Tool, clock(begin.T), clock(c.end()), by, clock(bound))
	}
}

// hasClosed reports whether Close has returned.
func (c *court) hasClosed() bool {
	return slices.ContainsFunc(c.x.Of(""), func(i int) bool { return c.x.Event(i).Kind == history.Closed })
}

// callBound is when a call must have ended and what says so; 0 if nothing does.
//
// The server's timeout counts from when the call has a connection: a call to a lost server waits callWait for it before, and one to a
// lazy server as long as its start takes, so that for a lazy one only the caller's own deadline is judged.
//
// Who adjusts the server while a call is on its way changes that for the call or does not: the later bound counts.
func (c *court) callBound(begin *history.Event) (bound time.Duration, by string) {
	all := c.describedAs(begin)
	for i, d := range all {
		if b, why := c.boundBy(begin, &d.Server, all); i == 0 || b == 0 || bound > 0 && b > bound {
			bound, by = b, why
		}
	}
	return bound, by
}

// describedAs is every description of its server by which a call may have been bound: each that was in force until it was sent, which is at
// the latest when the connection has come back that it may wait for.
func (c *court) describedAs(begin *history.Event) []described {
	return c.describedIn(begin.Server, begin.T, begin.T+c.plan.CallWait+c.plan.WithdrawAfter+c.late)
}

// boundBy is the bound of a call by one description of its server, of all that may count.
func (c *court) boundBy(begin *history.Event, s *scenario.Server, all []described) (bound time.Duration, by string) {
	if s.CallTimeout > 0 && s.Connect != messages.Lazy {
		bound, by = begin.T+c.plan.CallWait+s.CallTimeout, "the server's call timeout"
		// Progress begins the timeout anew, as does each word of a task, and it stands still while the caller is asked something.
		if s.Tasks != "" || s.Offers || c.under(begin.Server, begin.T, bound, "endless-progress") {
			bound, by = begin.T+c.plan.CallWait+longestOf(s), longest
		}
	}
	// A caller who only repeats the server's timeout has none of its own. The simulation takes off a little of each, so that
	// no two end in one instant.
	own := !slices.ContainsFunc(all, func(d described) bool {
		return d.CallTimeout > 0 && begin.Deadline >= begin.T+d.CallTimeout-time.Millisecond
	})
	if begin.Deadline > 0 && own && (bound == 0 || begin.Deadline < bound) {
		bound, by = begin.Deadline, "its deadline"
	}
	return bound, by
}

// longestOf is how long a call may take whatever happens.
func longestOf(s *scenario.Server) time.Duration {
	return cmp.Or(s.MaxCallTimeout, max(longestCall, s.CallTimeout))
}

// ended judges the time and the word of a call's first end.
func (c *court) ended(call *history.CallRecord) {
	begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
	evidence := append([]int{call.Begin}, call.Received...)
	if !slices.Contains(words, end.Outcome) {
		c.violated(call.Server, call.Ends[0], evidence, "Call %s ended at %s with the outcome %q, which is none.", call.ID, clock(end.T),
			end.Outcome)
	}
	if end.T < begin.T {
		c.violated(call.Server, call.Ends[0], evidence, "Call %s began at %s and ended before that, at %s.", call.ID, clock(begin.T),
			clock(end.T))
	}
	bound, by := c.callBound(begin)
	if bound == 0 {
		return
	}
	if end.T > bound+onTime+c.late {
		c.violated(call.Server, call.Ends[0], evidence, "Call %s of tool %s began at %s and had to end at %s, for %s. It ended at %s "+
			"with %s.", call.ID, begin.Tool, clock(begin.T), clock(bound), by, clock(end.T), end.Outcome)
	}
	waited := end.Outcome == messages.OutcomeUnknown && end.Class == messages.ClassTimeout
	if by == longest { // progress that comes more seldom than the timeout does not prolong it
		bound, by = begin.T+c.plan.CallWait+c.server(begin.Server).CallTimeout, "the server's call timeout"
	}
	if all := c.describedAs(begin); len(all) > 1 || all[0].at >= 0 {
		for _, d := range all { // the earliest that any of them allows
			bound = min(bound, begin.T+c.plan.CallWait+d.CallTimeout)
		}
	}
	if waited && end.T < bound-c.plan.CallWait-onTime-c.late && !c.under(call.Server, begin.T, end.T, slowEars...) {
		c.violated(call.Server, call.Ends[0], evidence, "Call %s of tool %s was given up at %s because its time had passed, and %s "+
			"passes at %s.", call.ID, begin.Tool, clock(end.T), by, clock(bound))
	}
}

// diedWith judges a call whose connection ended under it. One that may be sent again waits for the next connection.
func (c *court) diedWith(call *history.CallRecord) {
	end := c.x.Event(call.Ends[0])
	if len(call.Received) != 1 {
		return
	}
	s, sent := c.server(call.Server), c.x.Event(call.Received[0])
	conn := c.connection(call.Server, sent.Conn)
	// Who follows a task over HTTP asks again and again, and learns of the end by that.
	if conn == nil || conn.Down < 0 || s.Tasks != "" && poolOf(s.Kind) == network || c.repeats(call.Server, sent.Tool, end.Tool) {
		return
	}
	for _, i := range call.Answered {
		if c.x.Event(i).Code != 0 {
			return // refused before it ran: it may be sent again
		}
	}
	down := c.x.Event(conn.Down)
	if down.T == sent.T && c.server(call.Server).Kind == messages.HTTP {
		return // it may have been sent after the crash, and whoever is there then answers where the server was
	}
	if down.T < sent.T || down.Class == messages.ClassSession || c.under(call.Server, down.T, down.T, unseen...) {
		return
	}
	bound := deathBound + c.late
	if !c.real {
		bound = outputTime + c.atOnce() // nobody else holds the output of a process that is simulated
	}
	if end.T > down.T+bound {
		c.violated(call.Server, call.Ends[0], []int{call.Begin, call.Received[0], conn.Down}, "Call %s of tool %s was on connection %d, "+
			"which died at %s. It ended only at %s, with %s: what is known to be dead is not waited for.",
			call.ID, end.Tool, conn.Conn, clock(down.T), clock(end.T), end.Outcome)
	}
}

// unseen are the faults under which the end of a server is not seen by the other side.
var unseen = []string{"half-open", "black-hole", "partition", "sleep", "stop"}

// repeats reports whether a tool of a server may be run twice: the server is trusted and says so of the tool.
func (c *court) repeats(server string, tools ...string) bool {
	return c.server(server).Trusted && (slices.Contains(tools, "read") || slices.Contains(tools, "put"))
}

// connection is one opening of a server, nil if nothing is known of it.
func (c *court) connection(server string, number int) *history.ConnRecord {
	conns := c.x.Conns(server)
	if number >= 1 && number <= len(conns) && conns[number-1].Conn == number { // mostly they are all there
		return conns[number-1]
	}
	for _, conn := range conns {
		if conn.Conn == number {
			return conn
		}
	}
	return nil
}

// run names one execution: the tool of a server that ran for the value-th time.
type run struct {
	server, tool string
	value        int
}

// executions finds every execution by what its result says.
func (c *court) executions() map[run]int {
	out := map[run]int{}
	for _, call := range c.x.Calls() {
		for _, i := range call.Executed {
			e := c.x.Event(i)
			out[run{e.Server, e.Tool, e.Value}] = i
		}
	}
	return out
}

// ownResult judges whether the result that a call was given belongs to it.
func (c *court) ownResult(call *history.CallRecord, ran map[run]int) {
	end := c.x.Event(call.Ends[0])
	if end.Outcome != messages.OutcomeResult || end.Value == 0 {
		return
	}
	i, ok := ran[run{end.Server, end.Tool, end.Value}]
	if e := c.x.Event(max(i, 0)); ok && e.Call != call.ID {
		c.violated(call.Server, call.Ends[0], []int{call.Begin, i}, "Call %s of tool %s was given, at %s, the result of call %s, which "+
			"was execution %d of the tool and ran at %s.", call.ID, end.Tool, clock(end.T), e.Call, e.Value, clock(e.T))
	}
}
