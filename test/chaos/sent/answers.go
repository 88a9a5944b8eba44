package sent

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A question is a request from the server to the client.
type question struct {
	method   string
	answered bool
}

// observeOther follows the server's own requests and task notifications; other messages change no rule.
func (c *conversation) observeOther(at time.Duration, body []byte) {
	// The harness's servers write the members in this order, so most messages are skipped without parsing.
	isQuestion := bytes.HasPrefix(body, []byte(`{"jsonrpc":"2.0","id":`))
	if !isQuestion && !bytes.Contains(body, []byte("/tasks/status")) {
		return
	}
	var m message
	if json.Unmarshal(body, &m) != nil || m.Method == nil {
		return
	}
	if isQuestion {
		c.asked[string(m.ID)] = &question{method: *m.Method}
		return
	}
	// The hint lets the client ask before the interval is over; see taskState.hinted.
	var p struct {
		TaskID string `json:"taskId"`
	}
	_ = json.Unmarshal(m.Params, &p) // a notification without a task id is about no task
	if t := c.tasks[p.TaskID]; t != nil {
		t.hinted = true
		t.hints++
		t.hintedAt = at
	}
}

// receiveAnswer judges the client's answer to a request of the server.
//
// 2025-11-25: "Responses MUST include the same ID as the request they correspond to", and either a result or an error "but not
// both".
func (c *conversation) receiveAnswer(m *message) {
	id := string(m.ID)
	q := c.asked[id]
	switch {
	case (m.Result == nil) == (m.Error == nil):
		c.reportProblem("it was sent an answer (id %s) that has not one of result and error", messages.Line(id, 60))
	case c.modern:
		c.reportProblem("it was sent an answer (id %s): in the modern era clients write none", messages.Line(id, 60))
	// A misled client may answer a request that it read out of the server's stray bytes, and a null id answers an unreadable
	// message.
	case q == nil && !c.misled && id != "null" && id != "":
		c.reportProblem("it was sent an answer with the id %s, and has asked nothing by that", messages.Line(id, 60))
	case q == nil:
	case q.answered:
		c.reportProblem("its request %s (%s) was answered twice", id, q.method)
	default:
		q.answered = true
		c.checkAnswer(id, q, m)
	}
}

// An errorForm has the members that the specification requires of an error; nil is missing.
type errorForm struct {
	Code    *int    `json:"code"`
	Message *string `json:"message"`
}

// answerForms holds, for each request of a server that the client knows, the member that its result must have; empty where any
// object will do.
var answerForms = map[string]string{"elicitation/create": "action", "sampling/createMessage": "role", "roots/list": "roots", "ping": ""}

// checkAnswer judges the form of an answer by the method of its request.
func (c *conversation) checkAnswer(id string, q *question, m *message) {
	if m.Error != nil {
		var e errorForm
		if json.Unmarshal(m.Error, &e) != nil || e.Code == nil || e.Message == nil {
			c.reportProblem("the error with which %s was answered has no code or no message: %s", id, messages.Line(string(m.Error), 120))
			return
		}
		if q.method == "ping" {
			c.reportProblem("its ping %s was answered with the error %d: 2025-11-25, \"The receiver MUST respond promptly with an empty response\"", id, *e.Code)
		}
		if _, known := answerForms[q.method]; !known && *e.Code != -32601 {
			c.reportProblem("its request %s (%s), which no client knows, was answered with the error %d: JSON-RPC wants -32601", id, q.method, *e.Code)
		}
		return
	}
	member, known := answerForms[q.method]
	var result map[string]json.RawMessage
	switch {
	case !known:
		c.reportProblem("its request %s (%s), which no client knows, was answered with a result: %s", id, q.method, messages.Line(string(m.Result), 120))
	case json.Unmarshal(m.Result, &result) != nil, member != "" && result[member] == nil:
		c.reportProblem("its request %s (%s) was answered with %s", id, q.method, messages.Line(string(m.Result), 120))
	}
}

// receiveNotification judges a cancellation by the requests before it; other notifications need no more than their form.
func (c *conversation) receiveNotification(now time.Duration, m *message) {
	overHTTP := c.server.Kind == messages.HTTP || c.server.Kind == messages.SSE
	if *m.Method != "notifications/cancelled" || m.params["requestId"] == nil {
		return
	}
	id := string(m.params["requestId"])
	r := c.requests[id]
	switch {
	// Over HTTP each message is a request of its own, and among real processes the cancellation may overtake what it cancels.
	case r == nil && c.crossTime == realCrossTime && overHTTP:
	case r == nil:
		// 2025-11-25: cancellations "MUST only reference requests that: Were previously issued in the same direction; Are
		// believed to still be in-progress".
		c.reportProblem("the manager cancelled the request %s, which it had never sent", messages.Line(id, 60))
	case r.method == "initialize":
		c.reportProblem("initialize was cancelled: 2025-11-25, \"The initialize request MUST NOT be cancelled by clients\"")
	case m.caller() != r.caller:
		c.reportProblem("the request %s (%s) with the credentials of %s was cancelled with those of %s", id, r.method, ownerOf(r.caller), ownerOf(m.caller()))
	case r.end == cancelled:
		if !c.isSentAgain() {
			c.reportProblem("the request %s (%s) was cancelled twice", id, r.method)
		}
	case r.end == answered && c.pause.earliestSending(now, c.crossTime, overHTTP) > r.endedAt+c.crossTime && !c.misled:
		c.reportProblem("the request %s (%s) was cancelled %s after its answer", id, r.method, (now - r.endedAt).Round(time.Millisecond))
	default:
		c.endRequest(now, id, cancelled)
	}
}

// ownerOf names the owner of credentials.
func ownerOf(caller string) string {
	if caller == "" {
		return "the connection"
	}
	return caller
}
