package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

const (
	// taskToldBound is how long after the end of a task its agent has its result: the interval in which a task may be asked about, and the time that an agent
	// takes before it asks at all, or to come back.
	taskToldBound = 5 * time.Second
	// taskPrincipalBound is the number of tasks of one principal from which one more may take the place of one that has ended.
	taskPrincipalBound = 64
	// taskCancelBound is the time in which the server of a task that its agent has cancelled is told so.
	taskCancelBound = time.Second
	// toldPrecision is the precision of the end of a task's time to live, which an agent is told as a begin and a duration, each in milliseconds.
	toldPrecision = 2 * time.Millisecond
)

// reportedEnd returns the event about the end of a call that its agent has taken over as a task, or that goes on without its agent, nil for any
// other call. It is the end of the call at the manager; its agent has it when it asks.
func (c *checker) reportedEnd(call *history.CallRecord) *history.Event {
	if c.real || !c.endsByItself(call) {
		return nil
	}
	if c.taskEnds == nil {
		c.taskEnds = c.findTaskEnds()
	}
	return c.taskEnds[call]
}

// endAtManager returns when a call that has an end had one at the manager: its agent may have learnt it later.
func (c *checker) endAtManager(call *history.CallRecord) time.Duration {
	at := c.x.Event(call.Ends[0]).T
	if reported := c.reportedEnd(call); reported != nil {
		at = min(at, reported.T)
	}
	return at
}

// endsByItself reports whether the end of a call at the manager may be another one than that of its agent: the agent has it as a task, or has left it alone.
func (c *checker) endsByItself(call *history.CallRecord) bool {
	return call.Tasked >= 0 || len(call.Ends) > 0 && c.x.Event(call.Ends[0]).Name == history.Unseen
}

// refusedAt returns when a call was refused that no server received. One that its agent has as a task became it with the refusal: nothing else
// makes a task of it, and the agent learns of the refusal when it asks.
func (c *checker) refusedAt(call *history.CallRecord) time.Duration {
	at := c.endAtManager(call)
	if t, ok := c.x.Time(call.Tasked); ok && !c.real && c.x.Event(call.Ends[0]).Name != history.Unseen {
		at = min(at, t)
	}
	return at
}

// wasFoundLater reports whether an agent has the task of a call only since it came back: its connection broke before it had the answer.
func (c *checker) wasFoundLater(call *history.CallRecord) bool {
	cut, lost := c.x.Time(call.Cut)
	return lost && call.Tasked >= 0 && cut <= c.x.Event(call.Tasked).T
}

// endOfWork returns when a call that has an end had one at the manager: the end of the history, if its agent could ask no more and nobody was told of another.
func (c *checker) endOfWork(call *history.CallRecord) time.Duration {
	if c.x.Event(call.Ends[0]).Name == history.Unseen && c.reportedEnd(call) == nil {
		return c.endTime()
	}
	end := c.endKnown(call)
	// An agent whose stream broke may have missed the end since then: a call that its server answered later ended no sooner (seed 30321471).
	for _, i := range call.Answered {
		if e := c.x.Event(i); call.Cut >= 0 && e.T <= c.x.Event(call.Ends[0]).T {
			end = max(end, e.T)
		}
	}
	return end
}

// findTaskEnds finds for each call that became an agent's task what was told of its end. A call that waited for its server began, for who watches, when it was
// sent: the event of such a call goes to the one that its server received in that moment, first to one that it answered at the end, else to the one that
// its server answered then, else to the last that it fits before its agent knew the end, but for what another call had. One that no server received has the
// refusal with which it became a task.
func (c *checker) findTaskEnds() map[*history.CallRecord]*history.Event {
	found, taken := map[*history.CallRecord]*history.Event{}, c.toldOfOthers()
	others := map[callEnd]int{}
	for _, call := range c.x.Calls() {
		if !c.endsByItself(call) && len(call.Ends) > 0 {
			others[c.endKey(c.x.Event(call.Ends[0]))]++
		}
	}
	for e := range taken {
		others[c.endKey(e)]--
	}
	take := func(fits func(call *history.CallRecord, e *history.Event) bool) {
		for _, call := range c.x.Calls() {
			if !c.endsByItself(call) || call.Begin < 0 || len(call.Ends) == 0 || found[call] != nil {
				continue
			}
			// The agent of a task learns of its end soon after it, so the last of several that fit is it.
			end, events := c.x.Event(call.Ends[0]), c.x.ServerEvents(call.Server)
			for n := range events {
				e := c.x.Event(events[n])
				if end.Name != history.Unseen {
					e = c.x.Event(events[len(events)-1-n])
				}
				if e.Kind != history.CallReported || e.Method != string(messages.EventCallEnded) || taken[e] || e.Tool != end.Tool ||
					end.Name != history.Unseen && e.T > end.T+c.instantBound() || !fits(call, e) {
					continue
				}
				found[call], taken[e] = e, true
				break
			}
		}
	}
	answered := func(call *history.CallRecord, e *history.Event) bool {
		return slices.ContainsFunc(call.Answered, func(i int) bool { return c.x.Event(i).T == e.T })
	}
	// Of a burst of calls that waited all are sent in one moment: the answer tells which of them an event is about.
	take(func(call *history.CallRecord, e *history.Event) bool {
		began := e.T - e.Took
		return answered(call, e) && (began == c.x.Event(call.Begin).T || len(call.Received) > 0 && began == c.x.Event(call.Received[0]).T)
	})
	take(func(call *history.CallRecord, e *history.Event) bool { return e.T-e.Took == c.x.Event(call.Begin).T })
	// A call that waited is sent in the moment in which watchers are told of its begin.
	take(func(call *history.CallRecord, e *history.Event) bool {
		return len(call.Received) > 0 && e.T-e.Took == c.x.Event(call.Received[0]).T
	})
	take(func(call *history.CallRecord, e *history.Event) bool {
		return e.T-e.Took >= c.x.Event(call.Begin).T && answered(call, e)
	})
	// isOther takes an event for one of a call that ended for its agent in that moment and in that way.
	isOther := func(e *history.Event) bool {
		if others[c.endKey(e)] == 0 {
			return false
		}
		others[c.endKey(e)]--
		taken[e] = true
		return true
	}
	take(func(call *history.CallRecord, e *history.Event) bool {
		return len(call.Received) > 0 && e.T-e.Took >= c.x.Event(call.Begin).T && e.T-e.Took <= c.x.Event(call.Received[0]).T && e.T >= c.x.Event(call.Received[0]).T &&
			!isOther(e)
	})
	take(func(call *history.CallRecord, e *history.Event) bool {
		return e.Outcome == messages.OutcomeNotSent && e.T-e.Took >= c.x.Event(call.Begin).T && c.becameTaskAt(call, e.T) && !isOther(e)
	})
	return found
}

// toldOfOthers returns the events by which watchers learnt of the ends of calls that have not become tasks, as far as begin and end of the event are those
// of the call.
func (c *checker) toldOfOthers() map[*history.Event]bool {
	type whole struct {
		callEnd
		began time.Duration
	}
	ends := map[whole][]*history.Event{}
	for _, i := range c.x.Order() {
		if e := c.x.Event(i); e.Kind == history.CallReported && e.Method == string(messages.EventCallEnded) {
			key := whole{c.endKey(e), e.T - e.Took}
			ends[key] = append(ends[key], e)
		}
	}
	taken := map[*history.Event]bool{}
	for _, call := range c.x.Calls() {
		if c.endsByItself(call) || len(call.Ends) == 0 || call.Begin < 0 {
			continue
		}
		key := whole{c.endKey(c.x.Event(call.Ends[0])), c.x.Event(call.Begin).T}
		if all := ends[key]; len(all) > 0 {
			taken[all[0]], ends[key] = true, all[1:]
		}
	}
	return taken
}

// becameTaskAt reports whether a call that no server received may have become a task at t: when its agent was told of the task, or before if its agent
// found that later.
func (c *checker) becameTaskAt(call *history.CallRecord, t time.Duration) bool {
	tasked, ok := c.x.Time(call.Tasked)
	return ok && len(call.Received) == 0 && (t == tasked || t < tasked && c.wasFoundLater(call))
}

// hasWaited reports whether a call waited for its server, so that nobody can tell what who watches was told of it.
func (c *checker) hasWaited(call *history.CallRecord) bool {
	return len(call.Received) == 0 || c.x.Event(call.Received[0]).T > c.x.Event(call.Begin).T+c.instantBound()
}

// checkTasks is I25 for calls that agents have taken over as tasks: the agent has the result soon after the task has ended, it finds the task as long as it
// may, and the server of a task that it has cancelled is told.
func (c *checker) checkTasks() {
	for _, call := range c.x.Calls() {
		if call.Tasked < 0 || call.Begin < 0 || len(call.Ends) == 0 {
			continue
		}
		c.judged++
		end, reported := c.x.Event(call.Ends[0]), c.reportedEnd(call)
		if reported != nil && reported.Outcome != messages.OutcomeUnknown && reported.Outcome != messages.OutcomeNotSent && end.T > reported.T+taskToldBound {
			c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, call.Tasked}, "The task of call %s of tool %s ended at %s with %s, and %s had that only at %s.", call.ID, end.Tool,
				timeText(reported.T), reported.Outcome, end.Agent, timeText(end.T))
		}
		if reported == nil && !c.real && end.Name != history.Unseen && end.T < c.closeTime()-c.slack && !c.hasWaited(call) {
			c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, call.Tasked}, "%s was told at %s how the task of call %s of tool %s ended, with %s, and its call had not ended.", end.Agent,
				timeText(end.T), call.ID, end.Tool, end.Outcome)
		}
		c.checkTaskCancelled(call)
		c.checkTaskTime(call)
	}
}

// checkTaskCancelled judges that the server of a task that was cancelled is told so, if its connection stands and the task goes on there.
func (c *checker) checkTaskCancelled(call *history.CallRecord) {
	if call.GivenUp < 0 || c.x.Event(call.Ends[0]).Name == history.Unseen || len(call.Received) == 0 {
		return
	}
	givenUp, received := c.x.Event(call.GivenUp), c.x.Event(call.Received[len(call.Received)-1])
	seen, request := c.statusesOf(call.Server), taskRequest{received.Conn, received.ID}
	task := seen.tasks[request]
	conn := c.connByNumber(call.Server, received.Conn)
	until := givenUp.T + taskCancelBound
	if task == "" || seen.began[request] > givenUp.T || conn == nil || c.endOfConn(conn) <= until+c.instantBound() || until >= c.closeTime() || c.underFault(call.Server, received.T, until) {
		return
	}
	// A task that has run, or failed, is told with its next status.
	if seen.hasEnded(connTask{received.Conn, task}, until) || slices.ContainsFunc(call.Executed, func(i int) bool { return c.x.Event(i).T <= until }) || c.wasCommanded(call.Server, received.T, until) {
		return
	}
	c.judged++
	if !slices.ContainsFunc(conn.Events, func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Received && e.Method == "tasks/cancel" && e.Task == task && e.T <= until
	}) {
		c.reportViolationAt(until, call.Server, call.GivenUp, []int{call.Begin, call.Tasked}, "%s gave the task of call %s of tool %s up at %s, and its server was not told by %s.", givenUp.Agent, call.ID,
			givenUp.Tool, timeText(givenUp.T), timeText(until))
	}
}

// checkTaskKnown judges that an agent is not told that its task does not exist, unless its time to live has passed, its server is away or hidden, or another
// task has taken its place.
func (c *checker) checkTaskKnown(s *agentSession, asked, replied int) {
	q, r := c.x.Event(asked), c.x.Event(replied)
	call := c.x.Call(q.About)
	if r.Code != -32602 || q.Name != "" || call == nil || call.Tasked < 0 {
		return
	}
	isTask := q.Method == "tasks/get" || q.Method == "tasks/result" || q.Method == "tasks/update"
	deadline := c.x.Event(call.Tasked).Deadline
	for _, e := range c.retimedTasks(call) {
		if e.T <= r.T {
			deadline = e.Deadline
		}
	}
	// A call that was sent again is another task, which may live shorter, and of which its agent may not have asked since.
	if len(call.Received) > 1 {
		if received, expires := c.taskExpiry(call, r.T); received >= 0 {
			deadline = min(deadline, expires)
		}
	}
	if !isTask || r.T >= deadline-c.instantBound() || c.tasksOf(s.principal, c.x.Event(call.Tasked).T, r.T) >= taskPrincipalBound ||
		c.mayBeAbsent(call.Server, q.T, r.T) || c.mayHideServer(s, call.Server, c.x.Event(call.Begin).Tool, q.T, r.T) {
		return
	}
	c.reportViolation(call.Server, replied, []int{asked, call.Tasked}, "%s asked %s at %s for its task of call %s, and was told that there is none (%s).", s.agent, q.Method, timeText(q.T), call.ID, r.Text)
}

// retimedTasks returns what the gateway said later of the time to live of a call's task, in order.
func (c *checker) retimedTasks(call *history.CallRecord) (out []*history.Event) {
	for _, i := range c.x.ServerEvents("") {
		if e := c.x.Event(i); e.Kind == history.Retimed && e.About == call.ID {
			out = append(out, e)
		}
	}
	return out
}

// checkTaskTime judges that an agent may ask for its task as long as the server has it, and no longer: the time that the server gives counts
// from when its task began, which may be another one than before.
func (c *checker) checkTaskTime(call *history.CallRecord) {
	for _, e := range append(c.retimedTasks(call), c.x.Event(call.Tasked)) {
		received, expires := c.taskExpiry(call, e.T)
		if received >= 0 && !c.wasUnreadable(call, e.T) && !isWithin(e.Deadline, expires, toldPrecision+c.instantBound()) {
			c.reportViolationAt(e.T, call.Server, received, []int{call.Begin, call.Tasked}, "The server of call %s keeps its task until %s, and its agent was told at %s that the "+
				"task lives until %s.", call.ID, timeText(expires), timeText(e.T), timeText(e.Deadline))
		}
	}
}

// wasUnreadable reports whether a call had failed by a time because the answer of its server could not be read: what it said of a task is not known
// then.
func (c *checker) wasUnreadable(call *history.CallRecord, t time.Duration) bool {
	if len(call.Ends) == 0 {
		return false
	}
	end := c.x.Event(call.Ends[0])
	return end.Class == messages.ClassProtocol && end.T <= t+c.instantBound()
}

// taskExpiry returns until when the server keeps the task that a call has at a time, and the event with which the server received that call, -1
// if it has none.
func (c *checker) taskExpiry(call *history.CallRecord, t time.Duration) (received int, expires time.Duration) {
	received = -1
	seen := c.statusesOf(call.Server)
	for _, i := range call.Received {
		r := taskRequest{c.x.Event(i).Conn, c.x.Event(i).ID}
		if seen.tasks[r] != "" && seen.began[r] <= t {
			received, expires = i, seen.expires[r]
		}
	}
	return received, expires
}

// tasksOf counts the tasks that the agents of a principal may have had at any time of a stretch: a call has its place before its agent is told of the
// task, has it until it fails without one, and keeps it if its agent gives it up.
func (c *checker) tasksOf(principal string, from, until time.Duration) (n int) {
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || c.x.Event(call.Begin).By != principal || c.x.Event(call.Begin).T > until {
			continue
		}
		if call.Tasked >= 0 || call.GivenUp >= 0 || len(call.Ends) == 0 || c.x.Event(call.Ends[0]).T >= from {
			n++
		}
	}
	return n
}

// mayHideServer reports whether the view of an agent may have hidden a tool at any time of a stretch.
func (c *checker) mayHideServer(s *agentSession, server, tool string, from, to time.Duration) bool {
	a := c.plannedAgent(s)
	if a == nil {
		return false
	}
	part, same := a.PartDuring(server, from-viewBound, to+c.instantBound())
	return !same || !part.Has(tool)
}
