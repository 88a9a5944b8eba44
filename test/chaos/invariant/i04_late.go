package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// cancelBound bounds the time until a cancellation is written: the manager writes it in the background, within 5 s.
const cancelBound = 5 * time.Second

// I4: what the manager sends about a call after its caller has an outcome. It sends neither a first request nor a repetition.
// It does send a cancellation, if the call ended by its timeout or its caller and the session lives on. That belongs here and
// not to I2, because both halves are one rule: the server can rely on which calls a caller waits for.
//
// Over streamable HTTP in the modern era the end of the exchange is the cancellation, and no message is due.
var lateSendCheck = newCheck("I4", "nothing is sent for a caller who has left",
	"No request is first written after its caller has an outcome; a call that was given up is cancelled at its server.",
	"No call of a server was received and ended.",
	func(c *checker) {
		// givenUp are the calls that need a cancellation, by server.
		givenUp := map[string][]*history.CallRecord{}
		for _, call := range c.x.Calls() {
			if call.Begin < 0 || len(call.Ends) == 0 || len(call.Received) == 0 {
				continue
			}
			c.judged++
			end := c.x.Event(call.Ends[0])
			// The call of an agent that may come back goes on without it.
			over := end.T
			if end.Name == history.Unseen {
				over = max(over, c.endOfWork(call))
			}
			for n, i := range call.Received {
				e := c.x.Event(i)
				if e.T <= over+c.serverDelay() || c.real && c.underFault(call.Server, over, e.T, slowReadFaults...) {
					continue
				}
				what := "was first sent to its server"
				if n > 0 {
					what = "was sent again"
				}
				c.reportViolation(call.Server, i, []int{call.Begin, call.Ends[0]}, "Call %s of tool %s ended at %s with %s, and %s at %s.", call.ID,
					end.Tool, timeText(over), end.Outcome, what, timeText(e.T))
			}
			if end.Outcome == messages.OutcomeUnknown && end.Name != history.Unseen && (end.Class == messages.ClassTimeout || end.Class == messages.ClassCanceled) {
				givenUp[call.Server] = append(givenUp[call.Server], call)
			}
		}
		for _, server := range c.x.Servers() {
			c.checkCancellation(server, givenUp[server])
		}
	})

// checkCancellation judges that each call that was given up on a surviving connection was followed by a cancellation there: of its request,
// or of its task if it had become one.
func (c *checker) checkCancellation(server string, givenUp []*history.CallRecord) {
	s := c.serverSpec(server)
	if len(givenUp) == 0 || s.Era == messages.EraModern && poolOf(s.Kind) == network && s.Kind != messages.WebSocket && s.Kind != messages.SSE {
		return
	}
	cancelled, cancelledTasks := map[taskRequest]time.Duration{}, map[connTask]time.Duration{}
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		switch {
		case e.Kind != history.Received:
		case e.Method == "notifications/cancelled":
			noteFirst(cancelled, taskRequest{e.Conn, e.About}, e.T)
		case e.Method == "tasks/cancel": // among real processes the task is not recorded
			noteFirst(cancelledTasks, connTask{e.Conn, e.Task}, e.T)
		}
	}
	seen := c.statusesOf(server)
	closing := c.closeTime()
	for _, call := range givenUp {
		end, last := c.x.Event(call.Ends[0]), c.x.Event(call.Received[len(call.Received)-1])
		at := c.endAtManager(call)
		conn := c.connByNumber(server, last.Conn)
		until := at + cancelBound + c.slack
		if conn == nil || until > closing || c.underFault(server, last.T, until, unheardCancelFaults...) || c.answeredBefore(call, at) || c.hasParted(call, at) || s.Tasks != "" && c.executedBefore(call, at) {
			continue
		}
		if t, ok := c.x.Time(conn.Down); ok && t <= until {
			continue
		}
		if t, ok := c.x.Time(conn.Released); ok && t <= until {
			continue
		}
		request := taskRequest{conn.Conn, last.ID}
		// One that has failed did not run, and its client may be asking for the error.
		if seen.hasEnded(connTask{conn.Conn, seen.tasks[request]}, at+c.skew) {
			continue
		}
		if t, ok := cancelled[request]; ok && t <= until {
			continue
		}
		if task := seen.tasks[request]; task != "" || c.real {
			if t, ok := cancelledTasks[connTask{conn.Conn, task}]; ok && t <= until {
				continue
			}
		}
		c.reportViolation(server, call.Ends[0], []int{call.Begin, call.Received[len(call.Received)-1]}, "Call %s of tool %s was given up at %s while connection %d "+
			"lived on, and its server was never told (notifications/cancelled).", call.ID, end.Tool, timeText(at), conn.Conn)
	}
}

// noteFirst notes a time, unless there is one.
func noteFirst[K comparable](times map[K]time.Duration, key K, t time.Duration) {
	if _, known := times[key]; !known {
		times[key] = t
	}
}

// unheardCancelFaults are the faults under which a server does not see what is written to it, or the manager cannot write.
var unheardCancelFaults = append(slices.Clone(slowReadFaults), "silent-discover", "era-flip", "unauthorized", "forbidden", "server-error", "redirect",
	"wrong-content-type", "truncate", "cut-stream", "lose-session", "stale-session-400")

// answeredBefore reports whether the server had answered a call by a time, so that there was nothing to cancel.
func (c *checker) answeredBefore(call *history.CallRecord, t time.Duration) bool {
	return slices.ContainsFunc(call.Answered, func(i int) bool { return c.x.Event(i).T <= t+c.skew })
}

// executedBefore reports whether a server had run a call by a time. A task that has run may have told so.
func (c *checker) executedBefore(call *history.CallRecord, t time.Duration) bool {
	return slices.ContainsFunc(call.Executed, func(i int) bool { return c.x.Event(i).T <= t+c.skew })
}

// connTask is a task by its name on a connection.
type connTask struct {
	conn int
	task string
}
