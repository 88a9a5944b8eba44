package peer

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

const (
	taskExtension = "io.modelcontextprotocol/tasks"
	// taskTime is the mean running time of a call that runs as a task; taskPoll is the poll interval that the server asks of
	// its client.
	taskTime = 3 * time.Second
	taskPoll = 400 * time.Millisecond
	// taskTTL is the time to live of a task, and shortTaskTTL that of every fourth one: it may run for longer.
	taskTTL      = time.Hour
	shortTaskTTL = 4 * time.Second
)

// The states of a task while its call has no answer.
const (
	taskWorks = "working"
	taskWaits = "input_required"
)

// task is a call that runs apart from the request that began it. It belongs to one connection and ends with it.
type task struct {
	// state is taskWorks, taskWaits, "completed", "failed" or "cancelled".
	id, state string
	call      *call
	began     time.Duration
	// finalAnswer is the answer of the call, nil while it runs. waiters answer the tasks/result requests that wait for it
	// (legacy era).
	finalAnswer *answer
	waiters     []func()
	ttl         time.Duration
	// resultRequest is the newest tasks/result that waits; nil without one. input is what the task asks for; nil for most.
	resultRequest *message
	input         *taskInput
}

// becomesTask decides whether a call becomes a task. In the modern era the server decides: always if its tools require tasks,
// else every second time.
func (m *machine) becomesTask(c *conn, q *message) bool {
	switch support := m.cfg.Server.Tasks; {
	case support == "" || q.ID == nil:
		return false
	case c.era != messages.EraModern:
		var p struct {
			Task json.RawMessage `json:"task"`
		}
		return json.Unmarshal(q.Params, &p) == nil && p.Task != nil
	case !q.meta.supportsTasks:
		return false
	default:
		c.taskCandidates++
		return support == scenario.TasksRequired || c.taskCandidates%2 == 0
	}
}

// beginTask answers the request of a call with its task, and lets the call run.
func (m *machine) beginTask(c *conn, k *call) {
	// Counted over all connections: a client that asks for a task of a process that died must not get another task's status.
	m.taskCount++
	t := &task{id: "task-" + strconv.Itoa(c.id) + "-" + strconv.Itoa(m.taskCount), state: taskWorks, call: k, began: m.now, ttl: taskTTL}
	if m.taskCount%4 == 0 {
		t.ttl = shortTaskTTL
	}
	c.runningTasks = append(c.runningTasks, t)
	result := `{"task":` + t.encodeStatus(m.now, c.era, false) + `}`
	if c.era == messages.EraModern {
		result = t.encodeStatus(m.now, c.era, false)
	}
	request := k.q
	// From here on the request is answered, and what belongs to its id is over: the call ends with its task.
	k.q = &message{Method: request.Method, Params: request.Params, header: request.header, meta: request.meta, task: t}
	m.sendAnswer(c, &answer{q: request, result: []byte(result), resultType: "task"})
	if !m.isEnded(c) {
		m.dispatchCall(c, k)
	}
}

// endTask stores the answer of a call that runs as a task, and answers the requests that wait for it. A cancelled task drops
// the answer.
func (m *machine) endTask(c *conn, t *task, a *answer) {
	if t.finalAnswer != nil || t.state == "cancelled" {
		return
	}
	t.finalAnswer, t.state = a, "completed"
	if a.result == nil || a.isError && c.era != messages.EraModern {
		t.state = "failed"
	}
	m.notifyTask(c, t)
	for _, wake := range t.waiters {
		wake()
	}
	t.waiters = nil
}

// handleTaskRequest handles tasks/get, list, cancel, result and update. List and result exist only in the legacy era, update only in the
// modern one.
func (m *machine) handleTaskRequest(c *conn, q *message) {
	var p struct {
		TaskID string `json:"taskId"`
	}
	// Params without an id match no task.
	_ = json.Unmarshal(q.Params, &p)
	at := slices.IndexFunc(c.runningTasks, func(t *task) bool { return t.id == p.TaskID })
	switch {
	case q.Method == "tasks/list" && c.era != messages.EraModern:
		m.answerResult(c, q, c.listTasks(m.now))
	case at < 0:
		m.answerError(c, q, codeInvalidParams, "Failed to retrieve task: Task not found", "")
	case q.Method == "tasks/get":
		if t := c.runningTasks[at]; t.state == taskWaits {
			t.input.tellings++
		}
		m.answerResult(c, q, c.runningTasks[at].encodeStatus(m.now, c.era, true))
	case q.Method == "tasks/cancel":
		m.cancelTask(c, q, c.runningTasks[at])
	case q.Method == "tasks/result" && c.era != messages.EraModern:
		t := c.runningTasks[at]
		respond := func() { m.answerTaskResult(c, q, t) }
		// tasks/result blocks until the task ends; cancelTask and endTask call the waiters.
		if t.finalAnswer == nil && t.isOpen() {
			t.waiters, t.resultRequest = append(t.waiters, respond), q
			m.sendTaskQuestion(c, q, t)
			return
		}
		respond()
	case q.Method == "tasks/update" && c.era == messages.EraModern:
		m.updateTask(c, q, c.runningTasks[at])
	default:
		m.answerError(c, q, codeMethodNotFound, "Method not found: "+q.Method, "")
	}
}

// cancelTask cancels a running task. A task with a final answer cannot be cancelled; cancelling twice is answered like the
// first time.
func (m *machine) cancelTask(c *conn, q *message, t *task) {
	if t.finalAnswer != nil {
		m.answerError(c, q, codeInvalidParams, "Cannot cancel task: already in terminal status '"+t.state+"'", "")
		return
	}
	if t.isOpen() {
		t.state = "cancelled"
		m.cancelScheduled(t.call.token)
		c.finishCall(t.call)
		for _, wake := range t.waiters {
			wake()
		}
		t.waiters = nil
	}
	if c.era == messages.EraModern {
		m.answerResult(c, q, "{}")
		return
	}
	m.answerResult(c, q, t.encodeStatus(m.now, c.era, false))
}

// isOpen reports whether the task has neither ended nor been cancelled.
func (t *task) isOpen() bool { return t.state == taskWorks || t.state == taskWaits }

// answerTaskResult answers tasks/result with what the call would have been answered with.
func (m *machine) answerTaskResult(c *conn, q *message, t *task) {
	if t.finalAnswer == nil {
		m.answerError(c, q, codeInvalidParams, "Task was cancelled", "")
		return
	}
	m.sendAnswer(c, &answer{q: q, result: t.finalAnswer.result, code: t.finalAnswer.code, text: t.finalAnswer.text, data: t.finalAnswer.data})
}

// listTasks encodes all tasks of a connection.
func (c *conn) listTasks(now time.Duration) string {
	text := `{"tasks":[`
	for i, t := range c.runningTasks {
		if i > 0 {
			text += ","
		}
		text += t.encodeStatus(now, c.era, false)
	}
	return text + "]}"
}

// encodeStatus encodes a task. withResult adds its result or error, which the modern era wants in tasks/get. Times count from a
// fixed date, because the machine has no clock.
func (t *task) encodeStatus(now time.Duration, era messages.Era, withResult bool) string {
	at := func(d time.Duration) string {
		return quoteJSON(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(time.RFC3339Nano))
	}
	ttl, poll := "ttl", "pollInterval"
	if era == messages.EraModern {
		ttl, poll = "ttlMs", "pollIntervalMs"
	}
	text := `{"taskId":` + quoteJSON(t.id) + `,"status":` + quoteJSON(t.state) + `,"createdAt":` + at(t.began) + `,"lastUpdatedAt":` + at(now) +
		`,` + quoteJSON(ttl) + `:` + strconv.FormatInt(t.ttl.Milliseconds(), 10) + `,` + quoteJSON(poll) + `:` + strconv.Itoa(int(taskPoll.Milliseconds()))
	if withResult && era == messages.EraModern && t.finalAnswer != nil {
		if t.finalAnswer.result != nil {
			text += `,"result":` + string(t.finalAnswer.result)
		} else {
			text += `,"error":{"code":` + strconv.Itoa(t.finalAnswer.code) + `,"message":` + quoteJSON(t.finalAnswer.text) + `}`
		}
	}
	if withResult && era == messages.EraModern {
		text += t.encodeInputRequests()
	}
	return text + "}"
}
