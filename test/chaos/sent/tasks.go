package sent

import (
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A taskState is the client's knowledge of a task.
type taskState struct {
	// interval is the pause that the server wants between two requests, toldAt the time of its last answer about the task.
	interval, toldAt time.Duration
	// open counts the tasks/get in progress, besides those of them that a program may have sent beside the polling.
	open, besides int
	// hinted is set by a status notification since the last tasks/get, and allows an earlier request. ended is set when the server
	// tells the end of the task, and the client has got that at endedAt; cancelled when it has canceled it, fetched when the server
	// sends the result.
	hinted, ended, cancelled, fetched bool
	endedAt                           time.Duration
	// programsEnd is set if a program of its own may be what the server has told of the end, so that the polling goes on.
	programsEnd bool
	// hints counts the notifications since the last tasks/get, and hintedAt is the time of the newest.
	hints    int
	hintedAt time.Duration
	// listed counts the lists of tasks with this one. Each may be followed by a tasks/get that a program of its own asks for,
	// beside the polling. listedResults counts the same for tasks/result.
	listed, listedResults int
	// mayLook and mayFetch are set by a request that got no result: who holds the task may look for it, or fetch its result, once more.
	mayLook, mayFetch bool
	// failed is set by a tasks/get of the polling that the client gave up, at failedAt, until the next one.
	failed   bool
	failedAt time.Duration
	// inputs are the keys of the questions that the task has asked in the modern era, with the request that has answered it last; nil
	// for none.
	inputs map[string]*request
}

// A taskStatus is the form in which a server sends a task, in either era.
type taskStatus struct {
	ID           string   `json:"taskId"`
	Status       string   `json:"status"`
	Interval     *float64 `json:"pollInterval"`
	IntervalMs   *float64 `json:"pollIntervalMs"`
	InsideResult *struct {
		ID       string   `json:"taskId"`
		Status   string   `json:"status"`
		Interval *float64 `json:"pollInterval"`
	} `json:"task"`
}

// observeTask follows a result that may be about a task.
func (c *conversation) observeTask(at time.Duration, r *request, result map[string]json.RawMessage) {
	if r.method == "tasks/result" {
		if t := c.tasks[r.task]; t != nil {
			t.fetched = true
		}
		return
	}
	if result["taskId"] == nil && result["task"] == nil {
		return
	}
	s, ok := taskStatusOf(result)
	if !ok {
		return
	}
	// The legacy era puts the task of a tools/call into a member of the result.
	if s.InsideResult != nil {
		s.ID, s.Status, s.Interval = s.InsideResult.ID, s.InsideResult.Status, s.InsideResult.Interval
	}
	t := c.tasks[s.ID]
	if t == nil {
		t = &taskState{}
		c.tasks[s.ID] = t
		c.knownTasks[s.ID] = true
	}
	for _, ms := range []*float64{s.Interval, s.IntervalMs} {
		if ms != nil {
			t.interval = time.Duration(*ms * float64(time.Millisecond))
		}
	}
	// The interval runs from the answers to the polling, not from those to a program that asked beside it.
	if !r.onDemand && t.besides == 0 {
		t.toldAt = at
	}
	t.noteInputs(result["inputRequests"])
	switch s.Status {
	case "completed", "failed", "cancelled":
		if !t.ended && r.method == "tasks/get" {
			t.ended, t.endedAt, t.programsEnd = true, at, r.mayBeProgram
		}
	}
}

// hasEnded reports whether the client knows by now that the task has ended. An answer may take longer than the client waits.
func (t *taskState) hasEnded(now time.Duration) bool { return t.ended && now >= t.endedAt }

// noteInputs remembers the questions of a status.
func (t *taskState) noteInputs(inputRequests json.RawMessage) {
	var asked map[string]json.RawMessage
	_ = json.Unmarshal(inputRequests, &asked) // a value that is no object asks nothing
	for key := range asked {
		if t.inputs == nil {
			t.inputs = map[string]*request{}
		}
		if _, known := t.inputs[key]; !known {
			t.inputs[key] = nil
		}
	}
}

// receiveTaskInput judges the input that a client gives a task: an answer to what the task has asked, once. A client that never heard the
// answer to its request may send it again.
//
// 2026-07-28, Tasks: "Clients SHOULD deduplicate inputRequests keys across consecutive polls to avoid presenting the same request to the
// user or model more than once." SEP-2663: a server ignores the responses to what has been answered already.
func (c *conversation) receiveTaskInput(m *message, r *request, t *taskState) {
	var responses map[string]json.RawMessage
	if err := json.Unmarshal(m.params["inputResponses"], &responses); err != nil || len(responses) == 0 {
		c.reportProblem("the task %s was updated without any input", r.task)
		return
	}
	for key := range responses {
		switch given, asked := t.inputs[key]; {
		case !asked:
			c.reportProblem("the task %s was given the input %s, and has not asked for it", r.task, messages.Line(key, 60))
		case given != nil && given.end != abandoned:
			c.reportProblem("the task %s was given the input %s twice", r.task, messages.Line(key, 60))
		default:
			t.inputs[key] = r
			r.takeBacks = append(r.takeBacks, func() { t.inputs[key] = nil })
		}
	}
}

// endTaskRequest follows the end of a request about a task.
func (c *conversation) endTaskRequest(r *request, how ending) {
	if t := c.tasks[r.task]; t != nil && r.method == "tasks/get" {
		if t.open--; t.open == 0 {
			t.besides = 0
		}
	}
	if how != answered {
		c.noteLostTaskRequest(r, how)
	}
}

// noteLostTaskRequest follows a request about a task that got no result.
func (c *conversation) noteLostTaskRequest(r *request, how ending) {
	c.allowEarlyPoll(r)
	c.allowAnotherLook(r)
	c.noteFailedPoll(r, how)
}

// allowEarlyPoll follows a request that got no result. The client may ask for the task at once after tasks/update or tasks/result: the
// reason may be that it has just ended.
func (c *conversation) allowEarlyPoll(r *request) {
	if t := c.tasks[r.task]; t != nil && (r.method == "tasks/update" || r.method == "tasks/result") {
		t.hinted = true
	}
}

// allowAnotherLook follows a request about a task that got no result: the client may look for the task once more, beside its polling.
func (c *conversation) allowAnotherLook(r *request) {
	if t := c.tasks[r.task]; t != nil && (r.method == "tasks/get" || r.method == "tasks/result") {
		t.mayLook, t.mayFetch = true, true
	}
}

// failedPollIntervals is how many intervals a client waits after a tasks/get that had no answer: the server may have too much to do. Each
// further one in a row doubles that, which is not judged, because a refused one between them may count or not.
const failedPollIntervals = 2

// noteFailedPoll follows a tasks/get that the client gave up: it waits for two intervals before the next one. That is judged in virtual time only,
// because a real server learns of it later than the client; and only if no program asked for the task as well, because its requests look alike.
func (c *conversation) noteFailedPoll(r *request, how ending) {
	if t := c.tasks[r.task]; t != nil && r.method == "tasks/get" && how != refused && !r.onDemand && t.listed+t.besides == 0 && c.crossTime == virtualCrossTime {
		t.failed, t.failedAt = true, r.endedAt
	}
}

// lostTaskPause is the time between two looks for a task whose connection is gone.
const lostTaskPause = 3 * time.Second

// receiveLook judges a request about a task of which the server has told on another connection: a gateway whose agent holds the task looks for it
// on the next one, and goes on when it is told of it.
func (c *conversation) receiveLook(now time.Duration, r *request) {
	last, looked := c.looks[r.task]
	switch {
	case r.method != "tasks/get":
		c.reportProblem("it was sent %s for the task %s, of which it has told on another connection alone: who lost it looks whether it is there", r.method, messages.Line(r.task, 60))
	case looked && c.crossTime == virtualCrossTime && now < last+lostTaskPause:
		c.reportProblem("it was asked for the task %s, of which it has told on another connection, %s after the last time: who lost it looks once in %s",
			messages.Line(r.task, 60), (now - last).Round(time.Millisecond), lostTaskPause)
	}
	c.looks[r.task] = now
	r.takeBacks = append(r.takeBacks, func() { delete(c.looks, r.task) })
}

// taskStatusOf reads the members of a result that tell of a task. The others are not looked at, because the result of a finished
// task may have 17 MiB. It returns false if a member has another type than the specification says.
func taskStatusOf(result map[string]json.RawMessage) (s taskStatus, ok bool) {
	for name, to := range map[string]any{
		"taskId": &s.ID, "status": &s.Status, "pollInterval": &s.Interval, "pollIntervalMs": &s.IntervalMs, "task": &s.InsideResult,
	} {
		if value := result[name]; value != nil && json.Unmarshal(value, to) != nil {
			return taskStatus{}, false
		}
	}
	return s, true
}

// observeTaskList follows the answer to tasks/list. It may be the first that the client hears of a task: the answer to its call was lost.
func (c *conversation) observeTaskList(list json.RawMessage) {
	var all []taskStatus
	_ = json.Unmarshal(list, &all) // a list that cannot be read names no task
	for _, s := range all {
		t := c.tasks[s.ID]
		if t == nil {
			t = &taskState{}
			c.tasks[s.ID] = t
		}
		t.listed++
		t.listedResults++
	}
}

// receiveTaskRequest judges a request about a task.
func (c *conversation) receiveTaskRequest(now time.Duration, m *message, r *request) {
	r.task = textOf(m.params["taskId"])
	t := c.tasks[r.task]
	if t == nil && c.knownTasks[r.task] {
		if !c.misled {
			c.receiveLook(now, r)
		}
		return
	}
	if t == nil {
		if !c.misled {
			c.reportProblem("it was sent %s for the task %s, and never told of one", r.method, messages.Line(r.task, 60))
		}
		return
	}
	switch r.method {
	case "tasks/get":
		t.open++
		r.mayBeProgram = t.listed > 0
		isEarly := !t.hinted && now < t.toldAt+t.interval
		isHasty := !t.hinted && t.failed && now < t.failedAt+failedPollIntervals*t.interval
		t.failed = false
		switch {
		// Which of two requests at once is that of the polling, nobody can tell.
		case t.open > 1 && t.open-1 <= t.besides && !isEarly:
			r.onDemand = true
			return
		case t.listed > 0 && (t.hasEnded(now) || isEarly || t.open > 1):
			t.listed--
			t.besides++
			r.onDemand = true
			r.takeBacks = append(r.takeBacks, func() { t.listed++ })
			return
		case isHasty:
			c.reportProblem("it was asked for the task %s %s after it had left that unanswered, and wants to be asked every %s: a client "+
				"leaves it twice that time then", r.task, (now - t.failedAt).Round(time.Millisecond), t.interval)
		case t.mayLook && (t.hasEnded(now) || isEarly || t.open > 1):
			t.mayLook = false
			t.besides++
			r.onDemand = true
			r.takeBacks = append(r.takeBacks, func() { t.mayLook = true })
			return
		case t.hasEnded(now):
			c.reportProblem("it was asked for the task %s again, after it had told of its end", r.task)
		case isEarly:
			// 2025-11-25: "Requestors SHOULD respect the pollInterval provided in responses when determining polling frequency."
			c.reportProblem("it was asked for the task %s %s after it had told of it, and wants to be asked every %s", r.task,
				(now - t.toldAt).Round(time.Millisecond), t.interval)
		case t.open > 1:
			c.reportProblem("it was asked for the task %s while it was asked for it already", r.task)
		}
		// A hint that comes while this request is under way may be of later than its answer, and allows another one. A request that the
		// server refuses for its credentials has not used the hint up: it comes again at once.
		if t.hinted {
			// Of several hints in the instant of this request the last may have come after it was sent.
			t.hinted = t.hints > 1 && t.hintedAt == now
			t.hints = 0
			r.takeBacks = append(r.takeBacks, func() { t.hinted = true })
		}
	case "tasks/update":
		c.receiveTaskInput(m, r, t)
	case "tasks/result":
		switch {
		case t.fetched && t.listedResults > 0:
			t.listedResults--
			r.takeBacks = append(r.takeBacks, func() { t.listedResults++ })
		case t.fetched && t.mayFetch:
			t.mayFetch = false
			r.takeBacks = append(r.takeBacks, func() { t.mayFetch = true })
		case t.fetched:
			c.reportProblem("it was asked for the result of the task %s again", r.task)
		}
	case "tasks/cancel":
		// 2025-11-25: "Receivers MUST reject cancellation requests for tasks already in a terminal status".
		if t.hasEnded(now) && !t.programsEnd || t.cancelled {
			c.reportProblem("the task %s was cancelled after its end, or twice", r.task)
		}
		t.cancelled = true
		r.takeBacks = append(r.takeBacks, func() { t.cancelled = false })
	}
}

// mayHave reports whether a tool may stand in the newest list. Of one that the server has withdrawn a client knows no more that it must be
// called as a task: a call may have waited for its turn meanwhile.
func (l *listing) mayHave(tool string) bool {
	return l == nil || l.names == nil || l.names[tool] || len(l.names) >= keptRequests
}

// checkCall judges that a call is made as a task where the server requires it, and only where the server supports it.
//
// 2025-11-25, Tool-Level Negotiation: "If execution.taskSupport is "required", clients MUST invoke the tool as a task", and
// without the capability "clients MUST NOT attempt to use task augmentation".
func (c *conversation) checkCall(m *message) {
	// Before initialize is answered, and in the modern era, these rules do not apply.
	if c.version == "" {
		return
	}
	switch asTask := m.params["task"] != nil; {
	case asTask && scenario.ForbidsTasks(c.server.Tasks, textOf(m.params["name"])):
		c.reportProblem("the tool %s was called as a task, and says that it cannot be", messages.Line(textOf(m.params["name"]), 60))
	case asTask && c.server.Tasks == "":
		c.reportProblem("the tool %s was called as a task, and this server has none", messages.Line(textOf(m.params["name"]), 60))
	case !asTask && c.server.Tasks == scenario.TasksRequired && c.version == "2025-11-25" && c.lists["tools/list"].mayHave(textOf(m.params["name"])):
		c.reportProblem("the tool %s was not called as a task, and cannot be called otherwise", messages.Line(textOf(m.params["name"]), 60))
	}
}
