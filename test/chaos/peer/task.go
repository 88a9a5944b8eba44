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
	// end is what the call came to, nil while it runs; waiting are those who wait for that (legacy era).
	end     *answer
	waiting []func()
}

// asTask decides whether a call becomes a task.
//
// 2025-11-25: a client asks for a task with the member task of the params. Tasks extension of 2026-07-28: "The server is the
// sole decider; clients do not signal task preference on the request itself."
func (m *machine) asTask(c *conn, q *message) bool {
	switch support := m.cfg.Server.Tasks; {
	case support == "" || q.ID == nil:
		return false
	case c.era != messages.EraModern:
		var p struct {
			Task json.RawMessage `json:"task"`
		}
		return json.Unmarshal(q.Params, &p) == nil && p.Task != nil
	case !q.meta.tasks:
		return false
	default:
		c.tasks++
		return support == scenario.TasksRequired || c.tasks%2 == 0
	}
}

// beginTask answers a call with the task that it has become, and lets it run.
func (m *machine) beginTask(c *conn, k *call) {
	m.tasks++ // of all connections: a client that asks after a task of a process that died must not be told of another task
	t := &task{id: "task-" + strconv.Itoa(c.id) + "-" + strconv.Itoa(m.tasks), state: "working", call: k, began: m.now}
	c.running = append(c.running, t)
	result := `{"task":` + t.status(m.now, c.era, false) + `}`
	if c.era == messages.EraModern {
		result = t.status(m.now, c.era, false)
	}
	asked := k.q
	// From here on the request is answered, and what belongs to its id is over: the call ends with its task.
	k.q = &message{Method: asked.Method, Params: asked.Params, header: asked.header, meta: asked.meta, task: t}
	m.answer(c, &answer{q: asked, result: []byte(result), kind: "task"})
	if !m.over(c) {
		m.callOn(c, k)
	}
}

// endTask takes the answer of a call that runs as a task.
func (m *machine) endTask(c *conn, t *task, a *answer) {
	if t.end != nil || t.state == "cancelled" {
		return
	}
	t.end, t.state = a, "completed"
	if a.result == nil || a.isError && c.era != messages.EraModern {
		t.state = "failed"
	}
	if c.era != messages.EraModern {
		m.notify(c, "notifications/tasks/status", t.status(m.now, c.era, false), "")
	}
	for _, wake := range t.waiting {
		wake()
	}
	t.waiting = nil
}

// tasked takes a request about a task.
func (m *machine) tasked(c *conn, q *message) {
	var p struct {
		TaskID string `json:"taskId"`
	}
	_ = json.Unmarshal(q.Params, &p) // what names none is about none
	at := slices.IndexFunc(c.running, func(t *task) bool { return t.id == p.TaskID })
	switch {
	case q.Method == "tasks/list" && c.era != messages.EraModern:
		m.result(c, q, c.listTasks(m.now))
	case at < 0:
		m.refuse(c, q, codeInvalidParams, "Failed to retrieve task: Task not found", "")
	case q.Method == "tasks/get":
		m.result(c, q, c.running[at].status(m.now, c.era, true))
	case q.Method == "tasks/cancel":
		m.cancelTask(c, q, c.running[at])
	case q.Method == "tasks/result" && c.era != messages.EraModern:
		t := c.running[at]
		tell := func() { m.tellResult(c, q, t) }
		if t.end == nil && t.state == "working" {
			t.waiting = append(t.waiting, tell)
			return
		}
		tell()
	default:
		m.refuse(c, q, codeNoMethod, "Method not found: "+q.Method, "")
	}
}

func (m *machine) cancelTask(c *conn, q *message, t *task) {
	if t.end != nil {
		m.refuse(c, q, codeInvalidParams, "Cannot cancel task: already in terminal status '"+t.state+"'", "")
		return
	}
	if t.state == "working" {
		t.state = "cancelled"
		m.forget(t.call.token)
		c.done(t.call)
		for _, wake := range t.waiting {
			wake()
		}
		t.waiting = nil
	}
	if c.era == messages.EraModern {
		m.result(c, q, "{}")
		return
	}
	m.result(c, q, t.status(m.now, c.era, false))
}

// tellResult answers tasks/result with what the call would have been answered with.
func (m *machine) tellResult(c *conn, q *message, t *task) {
	if t.end == nil {
		m.refuse(c, q, codeInvalidParams, "Task was cancelled", "")
		return
	}
	m.answer(c, &answer{q: q, result: t.end.result, code: t.end.code, text: t.end.text, data: t.end.data})
}

func (c *conn) listTasks(now time.Duration) string {
	text := `{"tasks":[`
	for i, t := range c.running {
		if i > 0 {
			text += ","
		}
		text += t.status(now, c.era, false)
	}
	return text + "]}"
}

// status is the task as JSON. whole has its result with it, or its error, as the modern era wants it of tasks/get.
func (t *task) status(now time.Duration, era messages.Era, whole bool) string {
	at := func(d time.Duration) string {
		return quote(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC).Add(d).Format(time.RFC3339Nano))
	}
	ttl, poll := "ttl", "pollInterval"
	if era == messages.EraModern {
		ttl, poll = "ttlMs", "pollIntervalMs"
	}
	text := `{"taskId":` + quote(t.id) + `,"status":` + quote(t.state) + `,"createdAt":` + at(t.began) + `,"lastUpdatedAt":` + at(now) +
		`,` + quote(ttl) + `:3600000,` + quote(poll) + `:` + strconv.Itoa(int(taskPoll.Milliseconds()))
	if whole && era == messages.EraModern && t.end != nil {
		if t.end.result != nil {
			text += `,"result":` + string(t.end.result)
		} else {
			text += `,"error":{"code":` + strconv.Itoa(t.end.code) + `,"message":` + quote(t.end.text) + `}`
		}
	}
	return text + "}"
}
