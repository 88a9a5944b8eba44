package invariant

import (
	"net/http"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkRefusedCall is I3 for calls that did not run, and of which that is known: who is told "unknown" must not call again, and
// has to find out by hand what became of nothing. And for the opposite: rejected is what the server has said.
//
//   - A call that reached no server is not sent.
//   - One that its server refused, each time that it was sent, is rejected or not sent.
//   - One that is told to be rejected was refused by its server.
func (c *checker) checkRefusedCall(call *history.CallRecord) {
	if len(call.Ends) == 0 || len(call.Executed) > 0 {
		return
	}
	begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
	switch {
	case end.Outcome == messages.OutcomeUnknown && len(call.Received) == 0:
		// In a run of real processes bytes may lie where nobody sees them, and what is given up is taken back from a socket.
		if !c.real || !c.wasGivenUp(call, end.T) && !c.underFault(call.Server, begin.T, end.T) {
			c.reportViolation(call.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s ended with unknown at %s, and no server received it: "+
				"it was not sent, and may be called again.", call.ID, begin.Tool, timeText(end.T))
		}
	case end.Outcome == messages.OutcomeUnknown:
		if at := c.refusalEvents(call, end.T); len(at) >= len(call.Received) && !c.underFault(call.Server, begin.T, end.T, answerDelayFaults...) {
			c.reportViolation(call.Server, call.Ends[0], append([]int{call.Begin}, at...), "Call %s of tool %s ended with unknown at %s, and its server "+
				"had refused it before it ran (%d): who is told so may call again.", call.ID, begin.Tool, timeText(end.T), c.x.Event(at[0]).Code)
		}
	case end.Outcome == messages.OutcomeRejected && len(c.refusalEvents(call, end.T)) == 0 && len(call.Received) > 0:
		// What a server says of a task that it does not know, or that was cancelled, is said in the answer to another request.
		if c.serverSpec(call.Server).Tasks == "" && !c.underFault(call.Server, begin.T, end.T, lossyFaults...) {
			c.reportViolation(call.Server, call.Ends[0], append([]int{call.Begin}, call.Received...), "Call %s of tool %s ended with rejected at %s, and "+
				"its server had received it and not refused it: it may run yet.", call.ID, begin.Tool, timeText(end.T))
		}
	}
}

// refusalEvents are the answers by which a server said, before a time, that a call does not run: an error of JSON-RPC, or a status that
// puts the blame on the request. One that took too long (408) may run.
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

// lossyFaults are the faults under which what was written does not arrive, or what the server answers is not what it meant, or comes in
// pieces, of which none is seen as the answer.
var lossyFaults = append(slices.Clone(slowReadFaults), "half-line", "wrong-content-type", "truncate", "cut-stream", "server-error", "redirect", "era-flip", "reset",
	"lose-session")
