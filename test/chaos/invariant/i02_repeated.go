package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// lossFaults are the faults under which one answer is lost and the connection serves on.
var lossFaults = []string{"truncate", "list-changed", "hang-call"}

// checkRepeated is I2 for a call whose answer was lost alone. If its server is trusted, the tool may run twice and the server
// answers over the same connection that it is there, the call is made once more, and not told as unknown after the first time.
func (c *checker) checkRepeated() {
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || len(call.Ends) == 0 || len(call.Received) != 1 || c.real || c.spec[call.Server] == nil || !c.spec[call.Server].Trusted {
			continue
		}
		begin, received, end := c.x.Event(call.Begin), c.x.Event(call.Received[0]), c.x.Event(call.Ends[0])
		if begin.Tool != scenario.ReadTool && begin.Tool != scenario.PutTool || end.Outcome != messages.OutcomeUnknown || end.Class != messages.ClassNetwork {
			continue
		}
		if c.wasGivenUp(call, end.T) || begin.Deadline > 0 && end.T >= begin.Deadline-c.slack || c.underOtherFault(call.Server, begin.T, end.T, lossFaults) {
			continue
		}
		if _, found := c.commandIn(c.ownerCommands(call.Server), received.T, end.T); found {
			continue
		}
		if !slices.ContainsFunc(connectedSpans(c.phaseSpans(call.Server)), func(u connectedSpan) bool { return u.from < received.T && u.to > end.T+c.skew }) {
			continue
		}
		conn := c.connNumbered(call.Server, received.Conn)
		if conn == nil || !c.answersPings(conn, received, end) || c.answeredQuestion(conn, received, end) {
			continue
		}
		c.judged++
		c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, call.Received[0]}, "Call %s of tool %s was lost after %s, its tool may run twice, and the server answered a "+
			"ping over the same connection. It was to be made again, and its caller was told at %s that its outcome is unknown.", call.ID, begin.Tool,
			timeText(received.T), timeText(end.T))
	}
}

// checkLostCalls is I2 for a call that was lost with its connection, at a trusted server, of a tool that may run twice. It waits for the next
// connection, to be made once more, while its server is on its way back: as long as CallWait says, and at least until the tools are withdrawn.
func (c *checker) checkLostCalls() {
	wait := max(c.plan.CallWait, c.plan.WithdrawAfter)
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || len(call.Ends) == 0 || len(call.Received) != 1 || c.real || c.spec[call.Server] == nil || !c.spec[call.Server].Trusted {
			continue
		}
		begin, received, end := c.x.Event(call.Begin), c.x.Event(call.Received[0]), c.x.Event(call.Ends[0])
		if begin.Tool != scenario.ReadTool && begin.Tool != scenario.PutTool || end.Outcome != messages.OutcomeUnknown ||
			!slices.Contains([]messages.Class{messages.ClassNetwork, messages.ClassExited}, end.Class) || c.spec[call.Server].Tasks != "" { // what has become a task goes on without its connection
			continue
		}
		if c.wasGivenUp(call, end.T) || begin.Deadline > 0 && end.T >= begin.Deadline-c.slack || end.T >= c.closeTime()-c.slack || c.underFault("", begin.T, end.T) {
			continue
		}
		if c.mayHaveTimedOut(call.Server, begin.T, end.T) {
			continue // its own time has passed, and the loss says more than that
		}
		if _, found := c.commandIn(c.ownerCommands(call.Server), received.T, end.T); found {
			continue
		}
		// What was asked on a connection of the legacy era names no call: each that runs counts as asked about.
		conn := c.connNumbered(call.Server, received.Conn)
		if conn == nil || slices.ContainsFunc(conn.Events, func(i int) bool { return c.x.Event(i).Kind == history.Inquiry }) || c.answeredQuestion(conn, received, end) {
			continue
		}
		stays := c.phaseSpans(call.Server)
		k := slices.IndexFunc(stays, func(s phaseSpan) bool {
			return s.Phase == messages.Connected && s.T <= received.T && s.to >= received.T && s.to <= end.T
		})
		if k < 0 {
			continue
		}
		// A connection that ended before may have failed it already: a call is made twice at most.
		if k > 0 && slices.ContainsFunc(stays[:k], func(s phaseSpan) bool { return s.Phase == messages.Connected && s.to >= begin.T-c.skew }) {
			continue
		}
		lost, since := stays[k].to, stays[k].to
		if down, known := c.x.Time(conn.Down); known { // the call may know of the end before the manager publishes it, as on seed 20960921
			since = min(since, down)
		}
		if failed := c.failedAlone(conn, call); failed >= 0 {
			since = min(since, failed)
		}
		c.judged++
		if end.T < since+wait-c.slack && c.isComingBack(stays, lost+1, max(end.T+c.skew, lost+2)) {
			c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, call.Received[0]}, "Call %s of tool %s was lost with its connection at %s, and its tool may run twice. "+
				"The server was on its way back, and the caller was told at %s that the outcome is unknown. It may wait for %s.", call.ID, begin.Tool, timeText(lost), timeText(end.T), timeText(wait))
		}
	}
}

// failedAlone returns when a connection over HTTP answered a call with a status that says nothing of the call (seed 20991195), or a fault broke off a stream
// that may have been its own (seeds 20986893, 20987231), -1 if neither: the call is lost from then on, while the connection may last.
func (c *checker) failedAlone(conn *history.ConnRecord, call *history.CallRecord) time.Duration {
	for _, i := range c.x.ServerEvents(call.Server) {
		e := c.x.Event(i)
		switch {
		case e.Conn != conn.Conn || e.T < c.x.Event(call.Received[0]).T:
		case e.Kind == history.Answered && e.Call == call.ID && e.Code > 0, e.Kind == history.Fired && e.Name == "truncate":
			return e.T
		}
	}
	return -1
}

// answeredQuestion reports whether the server got an answer over a connection between two events. A call about which a person may have
// been asked is not made again, because the person would be asked twice.
func (c *checker) answeredQuestion(conn *history.ConnRecord, from, to *history.Event) bool {
	return slices.ContainsFunc(conn.Events, func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Received && e.Method == "" && e.T >= from.T && e.T <= to.T
	})
}

// answersPings reports whether a connection received a ping between two events, and answered each of these before the second. The
// answer to a ping before them says nothing of the time after the loss.
func (c *checker) answersPings(conn *history.ConnRecord, from, to *history.Event) bool {
	open, asked := map[string]bool{}, false
	for _, i := range conn.Events {
		e := c.x.Event(i)
		if e.Method != "ping" || e.T < from.T || e.T > to.T {
			continue
		}
		switch {
		case e.Kind == history.Received:
			open[e.ID], asked = true, true
		case e.Kind == history.Answered && e.Code == 0:
			delete(open, e.ID)
		}
	}
	return asked && len(open) == 0
}
