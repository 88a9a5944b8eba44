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
	// deadlineTolerance is how far from its deadline a call may end: R1, "timeout error at deadline ±100 ms".
	deadlineTolerance = 100 * time.Millisecond
	// longestCall bounds a call whatever progress it makes: messages.Spec.MaxCallTimeout, 10 min.
	longestCall   = 10 * time.Minute
	longestSource = "the longest time of a call"
	// connDeathBound is how long a call may go on after its server's end could be seen. On a child's exit its standard output is
	// drained to its end or for 20 ms, and given up after 1 s if a grandchild holds it; then every waiting call ends.
	connDeathBound  = 1500 * time.Millisecond
	outputDrainTime = 20 * time.Millisecond
)

// knownOutcomes are the outcomes that there are.
var knownOutcomes = []messages.Outcome{
	messages.OutcomeResult, messages.OutcomeToolError, messages.OutcomeRejected, messages.OutcomeNotSent, messages.OutcomeUnknown,
}

// I2: every call that was accepted ends once: not never, not twice, not later than its deadline, not before it by a clock,
// and soon after the connection that carries it has died; at the earliest moment at which the truth is known, see earliest. The
// result that it is given is its own.
var outcomeCheck = newCheck("I2", "one outcome per call",
	"Every accepted call has exactly one outcome, at the earliest moment at which it is known: when it is answered, when its connection "+
		"has died, when its caller gives it up, at the latest at its deadline.",
	"No tool was called.",
	func(c *checker) {
		ran := c.executionEvents()
		for _, call := range c.x.Calls() {
			if call.Begin < 0 {
				if len(call.Ends) > 0 {
					c.judged++
					c.reportViolation(call.Server, call.Ends[0], nil, "Call %s ended at %s, and nobody had made it.", call.ID,
						timeText(c.x.Event(call.Ends[0]).T))
				}
				continue
			}
			c.checkGivenUp(call)
			if len(call.Ends) == 0 {
				c.checkUnended(call)
				continue
			}
			c.judged++
			if len(call.Ends) > 1 {
				first, second := c.x.Event(call.Ends[0]), c.x.Event(call.Ends[1])
				c.reportViolation(call.Server, call.Ends[1], []int{call.Begin, call.Ends[0]}, "Call %s of tool %s ended twice: with %s at %s and "+
					"with %s at %s.", call.ID, first.Tool, first.Outcome, timeText(first.T), second.Outcome, timeText(second.T))
			}
			c.checkEndTime(call)
			c.checkConnDeath(call)
			c.checkEarliest(call)
			c.checkOwnResult(call, ran)
		}
		c.checkCallWait()
		c.checkReleasedCalls()
	})

// checkUnended judges a call without an end: it is fine as long as its time has not passed and the manager has not closed.
func (c *checker) checkUnended(call *history.CallRecord) {
	begin := c.x.Event(call.Begin)
	bound, source := c.callBound(begin)
	switch {
	case c.hasClosed():
		c.judged++
		c.reportViolation(call.Server, call.Begin, call.Received, "Call %s of tool %s began at %s and has no outcome, and the manager has "+
			"closed.", call.ID, begin.Tool, timeText(begin.T))
	case bound > 0 && c.endTime() > bound+deadlineTolerance+c.slack:
		c.judged++
		c.reportViolation(call.Server, call.Begin, call.Received, "Call %s of tool %s began at %s and has no outcome at %s: %s had passed "+
			"at %s.", call.ID, begin.Tool, timeText(begin.T), timeText(c.endTime()), source, timeText(bound))
	}
}

// hasClosed reports whether Close has returned.
func (c *checker) hasClosed() bool {
	return slices.ContainsFunc(c.x.ServerEvents(""), func(i int) bool { return c.x.Event(i).Kind == history.Closed })
}

// callBound is when a call must have ended and what says so; 0 if nothing does.
//
// The server's timeout counts from when the call has a connection: a call to a lost server waits callWait for it before, and one to a
// lazy server as long as its start takes, so that for a lazy one only the caller's own deadline is judged.
//
// Who adjusts the server while a call is on its way changes that for the call or does not: the later bound counts.
func (c *checker) callBound(begin *history.Event) (bound time.Duration, source string) {
	all := c.specVersionsOfCall(begin)
	for i, d := range all {
		if b, why := c.boundFor(begin, &d.Server, all); i == 0 || b == 0 || bound > 0 && b > bound {
			bound, source = b, why
		}
	}
	return bound, source
}

// specVersionsOfCall is every description of its server by which a call may have been bound: each that was in force until it was sent, which is at
// the latest when the connection has come back that it may wait for.
func (c *checker) specVersionsOfCall(begin *history.Event) []specVersion {
	return c.specVersionsIn(begin.Server, begin.T, begin.T+c.plan.CallWait+c.plan.WithdrawAfter+c.slack)
}

// boundFor is the bound of a call by one description of its server, of all that may count.
func (c *checker) boundFor(begin *history.Event, s *scenario.Server, all []specVersion) (bound time.Duration, source string) {
	if s.CallTimeout > 0 && s.Connect != messages.Lazy {
		bound, source = begin.T+c.plan.CallWait+s.CallTimeout, "the server's call timeout"
		// Progress begins the timeout anew, as does each word of a task, and it stands still while the caller is asked something.
		if s.Tasks != "" || s.Offers || c.underFault(begin.Server, begin.T, bound, "endless-progress") {
			bound, source = begin.T+c.plan.CallWait+longestOf(s), longestSource
		}
	}
	// A caller who only repeats the server's timeout has none of its own. The simulation takes off a little of each, so that
	// no two end in one instant.
	own := !slices.ContainsFunc(all, func(d specVersion) bool {
		return d.CallTimeout > 0 && begin.Deadline >= begin.T+d.CallTimeout-time.Millisecond
	})
	if begin.Deadline > 0 && own && (bound == 0 || begin.Deadline < bound) {
		bound, source = begin.Deadline, "its deadline"
	}
	return bound, source
}

// longestOf is how long a call may take whatever happens.
func longestOf(s *scenario.Server) time.Duration {
	return cmp.Or(s.MaxCallTimeout, max(longestCall, s.CallTimeout))
}

// checkEndTime judges the time and the word of a call's first end.
func (c *checker) checkEndTime(call *history.CallRecord) {
	begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
	evidence := append([]int{call.Begin}, call.Received...)
	if !slices.Contains(knownOutcomes, end.Outcome) {
		c.reportViolation(call.Server, call.Ends[0], evidence, "Call %s ended at %s with the outcome %q, which is none.", call.ID, timeText(end.T),
			end.Outcome)
	}
	if end.T < begin.T {
		c.reportViolation(call.Server, call.Ends[0], evidence, "Call %s began at %s and ended before that, at %s.", call.ID, timeText(begin.T),
			timeText(end.T))
	}
	bound, source := c.callBound(begin)
	if bound == 0 {
		return
	}
	if end.T > bound+deadlineTolerance+c.slack {
		c.reportViolation(call.Server, call.Ends[0], evidence, "Call %s of tool %s began at %s and had to end at %s, for %s. It ended at %s "+
			"with %s.", call.ID, begin.Tool, timeText(begin.T), timeText(bound), source, timeText(end.T), end.Outcome)
	}
	waited := end.Outcome == messages.OutcomeUnknown && end.Class == messages.ClassTimeout
	if source == longestSource { // progress that comes more seldom than the timeout does not prolong it
		bound, source = begin.T+c.plan.CallWait+c.serverSpec(begin.Server).CallTimeout, "the server's call timeout"
	}
	if all := c.specVersionsOfCall(begin); len(all) > 1 || all[0].event >= 0 {
		for _, d := range all { // the earliest that any of them allows
			bound = min(bound, begin.T+c.plan.CallWait+d.CallTimeout)
		}
	}
	if waited && end.T < bound-c.plan.CallWait-deadlineTolerance-c.slack && !c.underFault(call.Server, begin.T, end.T, slowReadFaults...) {
		c.reportViolation(call.Server, call.Ends[0], evidence, "Call %s of tool %s was given up at %s because its time had passed, and %s "+
			"passes at %s.", call.ID, begin.Tool, timeText(end.T), source, timeText(bound))
	}
}

// checkConnDeath judges a call whose connection ended under it. One that may be sent again waits for the next connection.
func (c *checker) checkConnDeath(call *history.CallRecord) {
	end := c.x.Event(call.Ends[0])
	if len(call.Received) != 1 {
		return
	}
	s, sent := c.serverSpec(call.Server), c.x.Event(call.Received[0])
	conn := c.connByNumber(call.Server, sent.Conn)
	// Who follows a task over HTTP asks again and again, and learns of the end by that.
	if conn == nil || conn.Down < 0 || s.Tasks != "" && poolOf(s.Kind) == network || c.mayRepeat(call.Server, sent.Tool, end.Tool) {
		return
	}
	for _, i := range call.Answered {
		if c.x.Event(i).Code != 0 {
			return // refused before it ran: it may be sent again
		}
	}
	down := c.x.Event(conn.Down)
	if down.T == sent.T && c.serverSpec(call.Server).Kind == messages.HTTP {
		return // it may have been sent after the crash, and whoever is there then answers where the server was
	}
	if down.T < sent.T || down.Class == messages.ClassSession || c.underFault(call.Server, down.T, down.T, hiddenEndFaults...) {
		return
	}
	bound := connDeathBound + c.slack
	if !c.real {
		bound = outputDrainTime + c.instantBound() // nobody else holds the output of a process that is simulated
	}
	if end.T > down.T+bound {
		c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, call.Received[0], conn.Down}, "Call %s of tool %s was on connection %d, "+
			"which died at %s. It ended only at %s, with %s: what is known to be dead is not waited for.",
			call.ID, end.Tool, conn.Conn, timeText(down.T), timeText(end.T), end.Outcome)
	}
}

// hiddenEndFaults are the faults under which the end of a server is not seen by the other side.
var hiddenEndFaults = []string{"half-open", "black-hole", "partition", "sleep", "stop"}

// mayRepeat reports whether a tool of a server may be run twice: the server is trusted and says so of the tool.
func (c *checker) mayRepeat(server string, tools ...string) bool {
	return c.serverSpec(server).Trusted && (slices.Contains(tools, "read") || slices.Contains(tools, "put"))
}

// connByNumber is one opening of a server, nil if nothing is known of it.
func (c *checker) connByNumber(server string, number int) *history.ConnRecord {
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

// execution names one execution: the tool of a server that ran for the value-th time.
type execution struct {
	server, tool string
	value        int
}

// executionEvents finds every execution by what its result says.
func (c *checker) executionEvents() map[execution]int {
	out := map[execution]int{}
	for _, call := range c.x.Calls() {
		for _, i := range call.Executed {
			e := c.x.Event(i)
			out[execution{e.Server, e.Tool, e.Value}] = i
		}
	}
	return out
}

// checkOwnResult judges whether the result that a call was given belongs to it.
func (c *checker) checkOwnResult(call *history.CallRecord, ran map[execution]int) {
	end := c.x.Event(call.Ends[0])
	if end.Outcome != messages.OutcomeResult || end.Value == 0 {
		return
	}
	i, ok := ran[execution{end.Server, end.Tool, end.Value}]
	if e := c.x.Event(max(i, 0)); ok && e.Call != call.ID {
		c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, i}, "Call %s of tool %s was given, at %s, the result of call %s, which "+
			"was execution %d of the tool and ran at %s.", call.ID, end.Tool, timeText(end.T), e.Call, e.Value, timeText(e.T))
	}
}
