package invariant

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkRefusedCall is I3 for calls that did not run, when that is known. A caller with an unknown outcome must not repeat the
// call and has to find out by hand what happened; here nothing did. It also judges the opposite: rejected means that the server
// refused the call.
//
//   - A call that reached no server is not sent.
//   - A call that its server refused each time that it was sent is rejected or not sent, unless its caller had given it up by then.
//   - A rejected call was refused by its server.
func (c *checker) checkRefusedCall(call *history.CallRecord) {
	if len(call.Ends) == 0 || len(call.Executed) > 0 {
		return
	}
	begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
	switch {
	case end.Name == history.Unseen && len(call.Received) == 0:
		// Its agent could ask about its task no more, and nothing told it an outcome.
	case end.Outcome == messages.OutcomeUnknown && len(call.Received) == 0:
		// In a run of real processes unread bytes may lie in a pipe where no event shows them, and the manager can take back
		// what it wrote to a socket, for a caller who gave the call up or whose time was over.
		left := c.wasGivenUp(call, end.T) || begin.Deadline > 0 && begin.Deadline <= end.T
		if !c.real || !left && !c.underFault(call.Server, begin.T, end.T) {
			c.reportViolation(call.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s ended with unknown at %s, and no server received it: "+
				"it was not sent, and may be called again.", call.ID, begin.Tool, timeText(end.T))
		}
	case end.Outcome == messages.OutcomeUnknown:
		at := c.refusalEvents(call, end.T)
		if len(at) >= len(call.Received) && !c.wasGivenUp(call, c.x.Event(at[len(at)-1]).T) && !c.underFault(call.Server, begin.T, end.T, answerDelayFaults...) {
			c.reportViolation(call.Server, call.Ends[0], append([]int{call.Begin}, at...), "Call %s of tool %s ended with unknown at %s, and its server "+
				"had refused it before it ran (%d): who is told so may call again.", call.ID, begin.Tool, timeText(end.T), c.x.Event(at[0]).Code)
		}
	case end.Outcome == messages.OutcomeRejected && len(c.refusalEvents(call, end.T)) == 0 && len(call.Received) > 0:
		// A server says of a task that it is unknown or cancelled in the answer to another request.
		if c.serverSpec(call.Server).Tasks == "" && !c.underFault(call.Server, begin.T, end.T, lossyFaults...) {
			c.reportViolation(call.Server, call.Ends[0], append([]int{call.Begin}, call.Received...), "Call %s of tool %s ended with rejected at %s, and "+
				"its server had received it and not refused it: it may run yet.", call.ID, begin.Tool, timeText(end.T))
		}
	}
}

// refusalEvents returns the answers before a time by which a server said that a call does not run: a JSON-RPC error, or a
// status that blames the request. A request that timed out (408) may run.
func (c *checker) refusalEvents(call *history.CallRecord, before time.Duration) (at []int) {
	for _, i := range call.Answered {
		e := c.x.Event(i)
		status := e.Code >= http.StatusContinue && e.Code < 600
		if e.Code != 0 && e.T <= before && (!status || e.Code/100 == 4 && e.Code != http.StatusRequestTimeout) {
			at = append(at, i)
		}
	}
	return at
}

// lossyFaults are the faults under which what was written does not arrive, or the answer is not the one that the server meant,
// or arrives in parts that no event shows as the answer.
var lossyFaults = append(slices.Clone(slowReadFaults), "half-line", "wrong-content-type", "truncate", "cut-stream", "server-error", "redirect", "era-flip", "reset",
	"lose-session")
