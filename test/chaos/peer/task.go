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
	// taskTime is how long a call takes that runs as a task, about, and taskPoll how often its client should ask.
	taskTime = 3 * time.Second
	taskPoll = 400 * time.Millisecond
)

// task is a call that runs apart from the request that began it. It is of one connection, and goes with it.
type task struct {
	id, state string
	call      *call
	began     time.Duration
	// finalAnswer is what the call came to, nil while it runs; waiting are those who wait for that (legacy era).
	finalAnswer *answer
	waiters     []func()
}

// becomesTask decides whether a call becomes a task.
//
// 2025-11-25: a client asks for a task with the member task of the params. Tasks extension of 2026-07-28: "The server is the
// sole decider; clients do not signal task preference on the request itself."
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

// beginTask answers a call with the task that it has become, and lets it run.
func (m *machine) beginTask(c *conn, k *call) {
	m.taskCount++ // of all connections: a client that asks after a task of a process that died must not be told of another task
	t := &task{id: "task-" + strconv.Itoa(c.id) + "-" + strconv.Itoa(m.taskCount), state: "working", call: k, began: m.now}
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

// endTask takes the answer of a call that runs as a task.
func (m *machine) endTask(c *conn, t *task, a *answer) {
	if t.finalAnswer != nil || t.state == "cancelled" {
		return
	}
	t.finalAnswer, t.state = a, "completed"
	if a.result == nil || a.isError && c.era != messages.EraModern {
		t.state = "failed"
	}
	if c.era != messages.EraModern {
		m.sendNotification(c, "notifications/tasks/status", t.encodeStatus(m.now, c.era, false), "")
	}
	for _, wake := range t.waiters {
		wake()
	}
	t.waiters = nil
}

// handleTaskRequest takes a request about a task.
func (m *machine) handleTaskRequest(c *conn, q *message) {
	var p struct {
		TaskID string `json:"taskId"`
	}
	_ = json.Unmarshal(q.Params, &p) // what names none is about none
	at := slices.IndexFunc(c.runningTasks, func(t *task) bool { return t.id == p.TaskID })
	switch {
	case q.Method == "tasks/list" && c.era != messages.EraModern:
		m.answerResult(c, q, c.listTasks(m.now))
	case at < 0:
		m.answerError(c, q, codeInvalidParams, "Failed to retrieve task: Task not found", "")
	case q.Method == "tasks/get":
		m.answerResult(c, q, c.runningTasks[at].encodeStatus(m.now, c.era, true))
	case q.Method == "tasks/cancel":
		m.cancelTask(c, q, c.runningTasks[at])
	case q.Method == "tasks/result" && c.era != messages.EraModern:
		t := c.runningTasks[at]
		respond := func() { m.answerTaskResult(c, q, t) }
		if t.finalAnswer == nil && t.state == "working" {
			t.waiters = append(t.waiters, respond)
			return
		}
		respond()
	default:
		m.answerError(c, q, codeMethodNotFound, "Method not found: "+q.Method, "")
	}
}

func (m *machine) cancelTask(c *conn, q *message, t *task) {
	if t.finalAnswer != nil {
		m.answerError(c, q, codeInvalidParams, "Cannot cancel task: already in terminal status '"+t.state+"'", "")
		return
	}
	if t.state == "working" {
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

// answerTaskResult answers tasks/result with what the call would have been answered with.
func (m *machine) answerTaskResult(c *conn, q *message, t *task) {
	if t.finalAnswer == nil {
		m.answerError(c, q, codeInvalidParams, "Task was cancelled", "")
		return
	}
	m.sendAnswer(c, &answer{q: q, result: t.finalAnswer.result, code: t.finalAnswer.code, text: t.finalAnswer.text, data: t.finalAnswer.data})
}

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

// encodeStatus is the task as JSON. whole has its result with it, or its error, as the modern era wants it of tasks/get.
func (t *task) encodeStatus(now time.Duration, era messages.Era, withResult bool) string {
	at := func(d time.Duration) string {
		return quoteJSON(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(time.RFC3339Nano))
	}
	ttl, poll := "ttl", "pollInterval"
	if era == messages.EraModern {
		ttl, poll = "ttlMs", "pollIntervalMs"
	}
	text := `{"taskId":` + quoteJSON(t.id) + `,"status":` + quoteJSON(t.state) + `,"createdAt":` + at(t.began) + `,"lastUpdatedAt":` + at(now) +
		`,` + quoteJSON(ttl) + `:3600000,` + quoteJSON(poll) + `:` + strconv.Itoa(int(taskPoll.Milliseconds()))
	if withResult && era == messages.EraModern && t.finalAnswer != nil {
		if t.finalAnswer.result != nil {
			text += `,"result":` + string(t.finalAnswer.result)
		} else {
			text += `,"error":{"code":` + strconv.Itoa(t.finalAnswer.code) + `,"message":` + quoteJSON(t.finalAnswer.text) + `}`
		}
	}
	return text + "}"
}
