package invariant

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// instantBound is the time that an immediate reaction may take: in virtual time only the nanoseconds by which the simulation
// keeps two events apart, in a run of real processes the time by which two sides may see one event apart.
func (c *checker) instantBound() time.Duration {
	if c.real {
		return c.skew + deadlineTolerance
	}
	return time.Millisecond
}

// checkEarliest is I2 for the time of an outcome: the caller gets it when it is known, not when some later timer fires.
//
//   - The answer has arrived: the call ends with it.
//   - The connection that carries it has died: the call ends with that, unless it may be sent again.
//   - It can be sent to no server, and may not wait for one: it ends where it began.
//   - Its own time has passed: it ends then.
func (c *checker) checkEarliest(call *history.CallRecord) {
	begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
	// A fault of the whole machine also delays the record.
	if c.real && c.underFault("", begin.T, end.T) {
		return
	}
	_ = c.checkAnswerTime(call, begin, end) && c.checkRefusalTime(call, begin, end) && c.checkCallBound(call, begin, end)
}

// endKnown returns the earliest time at which the end of a call may have been on its way to its caller: that of the end, but for an agent that
// is told with the new connection after one that was lost, or has none until it ends, as soon as the loss, and for one that asks for a task the end of
// the task's call.
func (c *checker) endKnown(call *history.CallRecord) time.Duration {
	end := c.x.Event(call.Ends[0]).T
	if reported := c.reportedEnd(call); reported != nil {
		return reported.T
	}
	cut, lost := c.x.Time(call.Cut)
	back, isBack := c.x.Time(call.Back)
	if lost && (!isBack || end >= back && end <= back+c.instantBound()) {
		return cut
	}
	return end
}

// checkAnswerTime judges a call whose answer was written to the connection. An answer that is sent in parts, or lies in the
// buffer of a connection that is not read, arrives later than the server writes it.
func (c *checker) checkAnswerTime(call *history.CallRecord, begin, end *history.Event) bool {
	if len(call.Answered) == 0 || len(call.Received) == 0 {
		return true
	}
	answer := c.x.Event(call.Answered[len(call.Answered)-1])
	last := c.x.Event(call.Received[len(call.Received)-1])
	// An HTTP status may be followed by another attempt, with other credentials or a new session.
	status := answer.Code >= http.StatusContinue && answer.Code < 600
	if answer.T < last.T || answer.Conn != last.Conn || status || c.endKnown(call) <= answer.T+c.instantBound() {
		return true
	}
	if c.underFault(call.Server, begin.T, answer.T, answerDelayFaults...) || c.real && c.underFault(call.Server, begin.T-longestDrip, answer.T, "slow-drip") {
		return true
	}
	c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, call.Answered[len(call.Answered)-1]}, "The answer to call %s of tool %s came on "+
		"connection %d at %s, and its caller was told only at %s, with %s.", call.ID, begin.Tool, answer.Conn, timeText(answer.T), timeText(end.T),
		end.Outcome)
	return false
}

// longestDrip is how long an answer of a real server may drip on after the fault slow-drip has ended. What the server says next comes
// behind it.
const longestDrip = 5 * time.Second

// answerDelayFaults are the faults under which an answer arrives later than the server writes it, or never.
var answerDelayFaults = append(slices.Clone(hiddenEndFaults), "slow-drip", "cut-stream", "truncate", "wrong-content-type", "half-line", "deaf", "late-response",
	"huge-line", "endless-line", "big-result", "era-flip")

// checkRefusalTime judges a call that no server received. If it may wait neither for the server nor for a slot among the calls
// in flight, the manager knows that when the call comes to it.
func (c *checker) checkRefusalTime(call *history.CallRecord, begin, end *history.Event) bool {
	if len(call.Received) > 0 || c.wasFoundLater(call) || end.Outcome != messages.OutcomeNotSent || end.Class == messages.ClassTimeout || c.refusedAt(call) <= c.passedOnAt(call)+c.instantBound() {
		return true
	}
	if c.plan.CallWait > 0 || c.isLazyOrBounded(call.Server, begin.T, end.T) {
		return true
	}
	if lost, yes := c.sessionLostAt(call.Server, begin.T, end.T); yes && end.T <= lost+c.plan.WithdrawAfter+c.slack {
		return true
	}
	// The call may wait for room in a pipe.
	if c.underFault(call.Server, begin.T, end.T, slowReadFaults...) {
		return true
	}
	c.reportViolation(call.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s began at %s and reached no server, and its caller was told "+
		"that it was not sent only at %s.", call.ID, begin.Tool, timeText(begin.T), timeText(end.T))
	return false
}

// checkCallBound judges a call with a limit of its own.
func (c *checker) checkCallBound(call *history.CallRecord, begin, end *history.Event) bool {
	bound, source := c.callBound(begin)
	if bound == 0 || source == longestSource || source != "its deadline" && c.plan.CallWait > 0 || c.endKnown(call) <= bound+c.instantBound() {
		return true
	}
	c.reportViolation(call.Server, call.Ends[0], append([]int{call.Begin}, call.Received...), "Call %s of tool %s began at %s and had to end at %s, "+
		"for %s. It ended at %s, %s later, with %s.", call.ID, begin.Tool, timeText(begin.T), timeText(bound), source, timeText(end.T),
		timeText(end.T-bound), end.Outcome)
	return false
}
