package peer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A taskInput is the question that a task asks in the middle of its work.
type taskInput struct {
	kind questionKind
	// sent is set once the question has left the server, given once the answer has come. In the modern era the question stands in every
	// status until then.
	sent, given bool
}

// scheduleTask lets a call that runs as a task run after taskTime. Every third task of a server with offers asks its caller for input
// after half of that time, and goes on when it has it.
func (m *machine) scheduleTask(c *conn, k *call) {
	t := k.q.task
	if kind, asks := m.taskQuestion(c, k); asks {
		t.input = &taskInput{kind: kind}
		k.token = m.scheduleAfter(c, m.drawAround(taskTime/2), func() { m.requireInput(c, t) })
		return
	}
	k.token = m.scheduleAfter(c, m.drawAround(taskTime), func() { m.runCall(c, k) })
}

// taskQuestion decides what a task asks for. Only what the client has declared may be asked.
func (m *machine) taskQuestion(c *conn, k *call) (kind questionKind, asks bool) {
	if !m.cfg.Server.Offers {
		return kind, false
	}
	if c.taskAskCount++; c.taskAskCount%3 != 0 {
		return kind, false
	}
	kind = questionKinds[c.taskAskCount/3%len(questionKinds)]
	if c.era == messages.EraModern {
		return kind, strings.Contains(string(k.q.Params), quoteJSON(kind.capability))
	}
	return kind, slices.Contains(c.capabilities, kind.capability)
}

// requireInput makes a task wait for input. In the legacy era the question goes to whoever waits for the task's result.
func (m *machine) requireInput(c *conn, t *task) {
	t.state = taskWaits
	m.notifyTask(c, t)
	if t.resultRequest != nil {
		m.sendTaskQuestion(c, t.resultRequest, t)
	}
}

// sendTaskQuestion sends the question of a task as a part of the answer to tasks/result.
//
// 2025-11-25, Related Task Metadata: "All requests, notifications, and responses related to a task MUST include the
// io.modelcontextprotocol/related-task key in their _meta field".
func (m *machine) sendTaskQuestion(c *conn, q *message, t *task) {
	if t.state != taskWaits || t.input.sent {
		return
	}
	t.input.sent = true
	id := "ask-" + t.id
	if c.openQuestions == nil {
		c.openQuestions = map[string]pendingQuestion{}
	}
	c.openQuestions[id] = pendingQuestion{t.call, t.input.kind}
	params := strings.TrimSuffix(t.input.kind.params, "}")
	if params != "{" {
		params += ","
	}
	params += `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":` + quoteJSON(t.id) + `}}}`
	m.sendOrHold(c, Send{
		Conn: c.id, Reply: string(q.ID), More: true,
		Body: json.RawMessage(`{"jsonrpc":"2.0","id":` + quoteJSON(id) + `,"method":` + quoteJSON(t.input.kind.method) + `,"params":` + params + `}`),
	})
}

// checkTaskAnswer judges the client's answer to the question of a task in the legacy era.
func (m *machine) checkTaskAnswer(t *task, result json.RawMessage) {
	if result != nil && !strings.Contains(string(result), quoteJSON(t.id)) {
		m.reportViolation("the task " + t.id + " asked for input, and the answer does not say that it belongs to it: " + messages.Line(string(result), 200))
	}
}

// giveInput lets a task go on with the input that it asked for.
func (m *machine) giveInput(c *conn, t *task) {
	if t.state != taskWaits {
		return
	}
	t.state, t.input.given = taskWorks, true
	m.notifyTask(c, t)
	t.call.token = m.scheduleAfter(c, m.drawAround(taskTime/2), func() { m.runCall(c, t.call) })
}

// updateTask handles tasks/update of the modern era, which brings the input of a task.
//
// 2026-07-28, Tasks: input that was given is not asked for again, and a client must not give it twice.
func (m *machine) updateTask(c *conn, q *message, t *task) {
	var p struct {
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	// Params without this member bring no input.
	_ = json.Unmarshal(q.Params, &p)
	switch {
	case t.input == nil || p.Responses[inputKey] == nil:
		m.reportViolation("the task " + t.id + " was given input that it has not asked for, or none")
	case t.input.given:
		// A client that saw no answer to the first request sends it again.
	default:
		m.checkAnswer(t.input.kind, p.Responses[inputKey])
		// The question stands in the status until the task has taken the answer, and a client must not answer it again.
		t.input.given = true
		t.call.token = m.scheduleAfter(c, m.drawAround(takingTime), func() { m.giveInput(c, t) })
	}
	m.answerResult(c, q, "{}")
}

// takingTime is the mean time in which a task of the modern era takes the input that it was given: longer than taskPoll.
const takingTime = time.Second

// inputKey names the one question of a task.
const inputKey = "it"

// encodeInputRequests encodes the member inputRequests of a status of the modern era, empty for a task that asks for nothing.
func (t *task) encodeInputRequests() string {
	if t.state != taskWaits {
		return ""
	}
	return `,"inputRequests":{` + strconv.Quote(inputKey) + `:{"method":` + quoteJSON(t.input.kind.method) + `,"params":` + t.input.kind.params + `}}`
}

// notifyTask tells a client of the legacy era the state of a task.
func (m *machine) notifyTask(c *conn, t *task) {
	if c.era != messages.EraModern {
		e := notifiedEvent(c.id, "notifications/tasks/status")
		e.Task, e.Name = t.id, t.state
		m.sendRecorded(c, e, t.encodeStatus(m.now, c.era, false), "")
	}
}
