package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkTaskTimeouts is I2 for calls that became tasks: each status of the task that comes is a sign of life, as progress is, from which
// the server's call timeout runs anew. Only the deadline of the caller and the longest time of a call end it without regard to that.
func (c *checker) checkTaskTimeouts() {
	for _, server := range c.x.Servers() {
		if c.serverSpec(server).Tasks == "" {
			continue
		}
		seen := c.statusesOf(server)
		for _, call := range c.callsOf(server) {
			begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
			if known := c.endKnown(call); known < end.T {
				before := *end
				before.T, end = known, &before
			}
			if end.Class != messages.ClassTimeout || end.Outcome != messages.OutcomeUnknown {
				continue
			}
			received := c.x.Event(call.Received[len(call.Received)-1])
			task := seen.tasks[taskRequest{received.Conn, received.ID}]
			statuses := seen.at[task]
			// The last one that the client has read before the end. One that came in that instant may have come too late.
			n, _ := slices.BinarySearch(statuses, end.T)
			if task == "" || n == 0 || c.passedOwnLimit(begin, received, end) || c.outlivedTask(call, end.T) || c.underFault(server, received.T, end.T, answerDelayFaults...) ||
				c.underFault(server, received.T, end.T, lossyFaults...) {
				continue
			}
			timeout := time.Duration(0)
			for i, d := range c.specVersionsIn(server, begin.T, end.T) {
				if i == 0 || d.CallTimeout < timeout {
					timeout = d.CallTimeout
				}
			}
			c.judged++
			if last := statuses[n-1]; end.T < last+timeout-deadlineTolerance-c.slack {
				c.reportViolation(server, call.Ends[0], []int{call.Begin, call.Received[len(call.Received)-1]}, "Call %s of tool %s, which runs as %s, was given up "+
					"at %s because its time had passed, and its server had said at %s that the task is at work: the timeout of %s runs from then.", call.ID, begin.Tool,
					task, timeText(end.T), timeText(last), timeText(timeout))
			}
		}
	}
}

// taskRequest is a request of a connection.
type taskRequest struct {
	conn int
	id   string
}

// taskStatuses says which requests became tasks and when, and when the status of each task came, in order.
type taskStatuses struct {
	tasks map[taskRequest]string
	began map[taskRequest]time.Duration
	// expires is when the time to live of a task has passed.
	expires map[taskRequest]time.Duration
	at      map[string][]time.Duration
	// ended is when a server of the legacy era said that a task has ended, with a result or an error.
	ended map[connTask]time.Duration
}

// statusesOf finds the tasks of a server, once.
func (c *checker) statusesOf(server string) taskStatuses {
	if seen, known := c.taskCache[server]; known {
		return seen
	}
	seen := c.findStatuses(server)
	if c.taskCache == nil {
		c.taskCache = map[string]taskStatuses{}
	}
	c.taskCache[server] = seen
	return seen
}

func (c *checker) findStatuses(server string) taskStatuses {
	seen := taskStatuses{map[taskRequest]string{}, map[taskRequest]time.Duration{}, map[taskRequest]time.Duration{}, map[string][]time.Duration{}, map[connTask]time.Duration{}}
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		switch {
		case e.Kind == history.Notified && (e.Name == string(messages.TaskCompleted) || e.Name == string(messages.TaskFailed)):
			noteFirst(seen.ended, connTask{e.Conn, e.Task}, e.T)
		case e.Kind != history.Answered || e.Task == "" || e.Code != 0:
		case e.Method == "tools/call":
			r := taskRequest{e.Conn, e.ID}
			seen.tasks[r], seen.began[r], seen.expires[r] = e.Task, e.T, e.Deadline
		case e.Method == "tasks/get":
			seen.at[e.Task] = append(seen.at[e.Task], e.T)
		}
	}
	return seen
}

// hasEnded reports whether a task had ended by a time, as its server said.
func (s *taskStatuses) hasEnded(task connTask, t time.Duration) bool {
	ended, ok := s.ended[task]
	return ok && ended <= t
}

// taskPatience is how long a task is asked for after its time to live.
const taskPatience = 30 * time.Second

// outlivedTask reports whether a call had become, by a time, a task that is asked for no more because its time to live has passed. The manager
// sees that when it would ask next: what it has asked, and the pause before, come first.
func (c *checker) outlivedTask(call *history.CallRecord, at time.Duration) bool {
	if c.serverSpec(call.Server).Tasks == "" || len(call.Received) == 0 {
		return false
	}
	last := c.x.Event(call.Received[len(call.Received)-1])
	expires, isTask := c.statusesOf(call.Server).expires[taskRequest{last.Conn, last.ID}]
	return isTask && at >= expires+taskPatience-deadlineTolerance
}

// passedOwnLimit reports whether a call ended because of a limit that no status of its task moves: the deadline of its caller, or the
// longest time of a call. The record has the deadline only if it is shorter than the server's timeout, and the load has it always. The
// longest time runs from when the call has found its server, which it may have waited for.
func (c *checker) passedOwnLimit(begin, received, end *history.Event) bool {
	took := end.T - begin.T
	if begin.Deadline > 0 && isWithin(end.T, begin.Deadline, deadlineTolerance) && begin.Deadline < begin.T+c.serverSpec(begin.Server).CallTimeout-time.Millisecond {
		return true
	}
	for _, l := range c.plan.Load {
		if l.Server == begin.Server && l.Timeout > 0 && isWithin(took, l.Timeout, deadlineTolerance) {
			return true
		}
	}
	return slices.ContainsFunc(c.specVersionsIn(begin.Server, begin.T, end.T), func(d specVersion) bool {
		longest := longestOf(&d.Server)
		return took >= longest-deadlineTolerance && end.T-received.T <= longest+deadlineTolerance
	})
}
