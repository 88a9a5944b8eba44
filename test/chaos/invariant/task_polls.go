package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// taskPolls is how many requests about a task in a row must fail before the call that became the task is given up for that.
const taskPolls = 5

// lostPollFaults are the faults under which a request about a task may fail although the server says that it has answered.
var lostPollFaults = slices.DeleteFunc(slices.Clone(lossyFaults), func(name string) bool { return name == "server-error" || name == "throttle" })

// checkTaskPolls is I2 for calls that became tasks, at servers that refuse single requests for a while: as long as the connection stands, the call
// ends for requests that failed only if the last ones all did. One that is answered shows that the task is there.
func (c *checker) checkTaskPolls() {
	for _, server := range c.x.Servers() {
		if c.serverSpec(server).Tasks == "" || c.real {
			continue
		}
		seen := c.statusesOf(server)
		for _, call := range c.callsOf(server) {
			begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
			if end.Outcome != messages.OutcomeUnknown || end.Class != messages.ClassNetwork && end.Class != messages.ClassThrottled || begin.Agent != "" || len(call.Received) == 0 {
				continue
			}
			received := c.x.Event(call.Received[len(call.Received)-1])
			task, conn := seen.tasks[taskRequest{received.Conn, received.ID}], c.connByNumber(server, received.Conn)
			if task == "" || conn == nil || c.endOfConn(conn) <= end.T+c.instantBound() || c.underFault(server, received.T, end.T, answerDelayFaults...) ||
				c.underFault(server, received.T, end.T, lostPollFaults...) {
				continue
			}
			c.judged++
			if failed, last := c.failedPolls(conn, task, end); failed < taskPolls {
				c.reportViolation(server, call.Ends[0], append([]int{call.Begin}, last...), "Call %s of tool %s, which runs as %s, was given up at %s because requests about it had "+
					"failed (%s), on a connection that stands: of the last ones %d had failed in a row, and %d have to.", call.ID, begin.Tool, task, timeText(end.T), describeClass(end.Class),
					failed, taskPolls)
			}
		}
	}
}

// failedPolls counts the requests about a task that had failed in a row when its call ended, and returns the answer before them, if there is one. What
// a program was told that had listed the tasks tells the call nothing.
func (c *checker) failedPolls(conn *history.ConnRecord, task string, end *history.Event) (failed int, before []int) {
	for _, i := range slices.Backward(conn.Events) {
		e := c.x.Event(i)
		isPoll := e.Method == "tasks/get" || e.Method == "tasks/result" || e.Method == "tasks/update"
		switch {
		case e.Kind != history.Answered || e.Task != task || !isPoll || e.T > end.T:
		case e.Code == 0 && c.isOfProgram(conn, e):
		case e.Code == 0:
			return failed, []int{i}
		default:
			failed++
		}
	}
	return failed, nil
}

// isOfProgram reports whether a request about a task may be one of a program that has just listed the tasks, by its answer.
func (c *checker) isOfProgram(conn *history.ConnRecord, answer *history.Event) bool {
	const soon = time.Second
	asked := time.Duration(-1)
	for _, i := range conn.Events {
		switch e := c.x.Event(i); {
		case e.Kind != history.Received || e.T > answer.T:
		case e.Method == "tasks/list":
			asked = e.T
		case e.ID == answer.ID:
			return asked >= 0 && e.T <= asked+soon
		}
	}
	return false
}
