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
	// deadlineTolerance bounds how far from its deadline a call may end: fault report R1, "timeout error at deadline ±100 ms".
	deadlineTolerance = 100 * time.Millisecond
	// longestCall bounds a call regardless of its progress: messages.Spec.MaxCallTimeout, 10 min.
	longestCall   = 10 * time.Minute
	longestSource = "the longest time of a call"
	// connDeathBound bounds how long a call may go on after the end of its server could be noticed. When a child exits, the manager
	// reads its standard output to the end or for 20 ms, and gives up after 1 s if a grandchild holds it open; then every call
	// under way ends.
	connDeathBound  = 1500 * time.Millisecond
	outputDrainTime = 20 * time.Millisecond
	// resumptionTime is how long the manager's HTTP client tries to go on with a stream whose server numbers its events: five times, after the
	// pause that the server asks for (300 ms at most) and after ones of up to 200, 400, 800 and 1,600 ms; and five times more when one of these
	// brought an event.
	resumptionTime = 7 * time.Second
)

// knownOutcomes are all outcomes.
var knownOutcomes = []messages.Outcome{
	messages.OutcomeResult, messages.OutcomeToolError, messages.OutcomeRejected, messages.OutcomeNotSent, messages.OutcomeUnknown,
}

// I2: every accepted call ends once: not never, not twice, not after its deadline, not before it by a timer, and soon after the
// connection that carries it has died; at the earliest time at which the outcome is known (see checkEarliest). The result that
// its caller gets is its own.
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
		c.checkWoken()
		c.checkRepeated()
		c.checkLostCalls()
		c.checkTaskTimeouts()
		c.checkTaskPolls()
	})

// checkUnended judges a call without an end: that is right as long as its time has not passed and the manager has not closed.
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

// callBound returns when a call must have ended and the reason; 0 if nothing bounds it.
//
// The server's timeout counts from when the call has a connection: a call to a lost server waits for CallWait before, and one
// to a lazy server for its start, so that a lazy server's calls are judged by the caller's own deadline only.
//
// If the owner adjusts the server during a call, the old or the new timeout may count; the later bound is taken.
func (c *checker) callBound(begin *history.Event) (bound time.Duration, source string) {
	all := c.specVersionsOfCall(begin)
	for i, d := range all {
		if b, why := c.boundFor(begin, &d.Server, all); i == 0 || b == 0 || bound > 0 && b > bound {
			bound, source = b, why
		}
	}
	return bound, source
}

// specVersionsOfCall returns every description of its server by which a call may be bounded: each that was in force until the
// call was sent, at the latest when the connection that it may wait for is back.
func (c *checker) specVersionsOfCall(begin *history.Event) []specVersion {
	return c.specVersionsIn(begin.Server, begin.T, begin.T+c.plan.CallWait+c.plan.WithdrawAfter+c.slack)
}

// boundFor returns the bound of a call by one description of its server; all are those that may count.
func (c *checker) boundFor(begin *history.Event, s *scenario.Server, all []specVersion) (bound time.Duration, source string) {
	if s.CallTimeout > 0 && s.Connect != messages.Lazy {
		bound, source = begin.T+c.plan.CallWait+s.CallTimeout, "the server's call timeout"
		// Progress restarts the timeout, and so does each status of a task; it stands still while the caller is asked
		// something.
		if s.Tasks != "" || s.Offers || c.underFault(begin.Server, begin.T, bound, "endless-progress") {
			bound, source = begin.T+c.plan.CallWait+longestOf(s), longestSource
		}
	}
	// A caller whose deadline only repeats the server's timeout has none of its own. The simulation shortens each limit a
	// little, so that no two end in one instant.
	own := !slices.ContainsFunc(all, func(d specVersion) bool {
		return d.CallTimeout > 0 && begin.Deadline >= begin.T+d.CallTimeout-time.Millisecond
	})
	if begin.Deadline > 0 && own && (bound == 0 || begin.Deadline < bound) {
		bound, source = begin.Deadline, "its deadline"
	}
	return bound, source
}

// longestOf returns how long a call may take regardless of its progress.
func longestOf(s *scenario.Server) time.Duration {
	return cmp.Or(s.MaxCallTimeout, max(longestCall, s.CallTimeout))
}

// checkEndTime judges time and outcome of a call's first end.
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
	if end.T > bound+deadlineTolerance+c.slack && c.endKnown(call) > bound+deadlineTolerance+c.slack {
		c.reportViolation(call.Server, call.Ends[0], evidence, "Call %s of tool %s began at %s and had to end at %s, for %s. It ended at %s "+
			"with the outcome %s.", call.ID, begin.Tool, timeText(begin.T), timeText(bound), source, timeText(end.T), end.Outcome)
	}
	waited := end.Outcome == messages.OutcomeUnknown && end.Class == messages.ClassTimeout
	// Progress that comes less often than the timeout does not extend it.
	if source == longestSource {
		bound, source = begin.T+c.plan.CallWait+c.serverSpec(begin.Server).CallTimeout, "the server's call timeout"
	}
	if all := c.specVersionsOfCall(begin); len(all) > 1 || all[0].event >= 0 {
		// The earliest time that any description allows.
		for _, d := range all {
			bound = min(bound, begin.T+c.plan.CallWait+d.CallTimeout)
		}
	}
	if at := c.endAtManager(call); waited && at < bound-c.plan.CallWait-deadlineTolerance-c.slack && !c.underFault(call.Server, begin.T, end.T, slowReadFaults...) &&
		!c.outlivedTask(call, at) {
		c.reportViolation(call.Server, call.Ends[0], evidence, "Call %s of tool %s was given up at %s because its time had passed, and %s "+
			"passes at %s.", call.ID, begin.Tool, timeText(at), source, timeText(bound))
	}
}

// checkConnDeath judges a call whose connection ended under it. A call that may be sent again waits for the next connection.
func (c *checker) checkConnDeath(call *history.CallRecord) {
	end := c.x.Event(call.Ends[0])
	if len(call.Received) != 1 {
		return
	}
	s, sent := c.serverSpec(call.Server), c.x.Event(call.Received[0])
	conn := c.connByNumber(call.Server, sent.Conn)
	// A caller that follows a task over HTTP polls, and notices the end only by that.
	if conn == nil || conn.Down < 0 || s.Tasks != "" && poolOf(s.Kind) == network || c.mayRepeat(call.Server, sent.Tool, end.Tool) {
		return
	}
	for _, i := range call.Answered {
		if c.x.Event(i).Code != 0 {
			// The server refused the call before it ran, so that it may be sent again.
			return
		}
	}
	down := c.x.Event(conn.Down)
	if down.T == sent.T && c.serverSpec(call.Server).Kind == messages.HTTP {
		// The call may have been sent after the crash, and the restarted server answers at the same address.
		return
	}
	if down.T < sent.T || down.Class == messages.ClassSession || c.underFault(call.Server, down.T, down.T, hiddenEndFaults...) {
		return
	}
	bound := connDeathBound + c.slack
	if !c.real {
		// No grandchild holds the output of a simulated process open.
		bound = outputDrainTime + c.instantBound()
		if s.Web == scenario.WebNumbered {
			bound += resumptionTime // a stream with an answer that has begun may be gone on with
		}
	}
	if c.endKnown(call) > down.T+bound {
		c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, call.Received[0], conn.Down}, "Call %s of tool %s was on connection %d, "+
			"which died at %s: the call had to end then, and ended only at %s, with the outcome %s.",
			call.ID, end.Tool, conn.Conn, timeText(down.T), timeText(end.T), end.Outcome)
	}
}

// hiddenEndFaults are the faults under which the manager cannot see the end of a server.
var hiddenEndFaults = []string{"half-open", "black-hole", "partition", "sleep", "stop"}

// mayRepeat reports whether a call may run twice: its server is trusted and marks the tool read-only or idempotent.
func (c *checker) mayRepeat(server string, tools ...string) bool {
	return c.serverSpec(server).Trusted && (slices.Contains(tools, "read") || slices.Contains(tools, "put"))
}

// connByNumber returns one connection of a server, nil if the history lacks it.
func (c *checker) connByNumber(server string, number int) *history.ConnRecord {
	conns := c.x.Conns(server)
	// Usually the history has all of them, and the number is the place.
	if number >= 1 && number <= len(conns) && conns[number-1].Conn == number {
		return conns[number-1]
	}
	for _, conn := range conns {
		if conn.Conn == number {
			return conn
		}
	}
	return nil
}

// execution names one run of a tool: the value-th at its server.
type execution struct {
	server, tool string
	value        int
}

// executionEvents finds every execution by the value in its result.
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

// checkOwnResult judges whether the result of a call comes from its own execution.
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
