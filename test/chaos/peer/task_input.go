package peer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A taskInput is what a task asks in the middle of its work: up to three questions, one after the other with some work between them, or in the
// modern era two at once.
type taskInput struct {
	questions []taskQuestion
	// from and to are the places of those that are asked now.
	from, to int
	// askedAt is when they were asked, and tellings counts the requests for the status of the task since.
	askedAt  time.Duration
	tellings int
}

// A taskQuestion is one question of a task. sent is set once it has left the server, given once the answer has come. In the modern era it stands
// in every status until then.
type taskQuestion struct {
	kind        questionKind
	sent, given bool
}

// asksNow returns the questions that are asked now.
func (i *taskInput) asksNow() []taskQuestion { return i.questions[i.from:i.to] }

// scheduleTask lets a call that runs as a task run after taskTime. Every third task of a server with offers asks its caller for input
// after half of that time, and goes on when it has it.
func (m *machine) scheduleTask(c *conn, k *call) {
	t := k.q.task
	if questions := m.taskQuestions(c, k); len(questions) > 0 {
		t.input = &taskInput{questions: questions}
		k.token = m.scheduleAfter(c, m.drawAround(taskTime/2), func() { m.requireInput(c, t) })
		return
	}
	k.token = m.scheduleAfter(c, m.drawAround(taskTime), func() { m.runCall(c, k) })
}

// taskQuestions decides what a task asks for: nothing in most, then one question, two or three. Only what the client has declared may be asked.
func (m *machine) taskQuestions(c *conn, k *call) (all []taskQuestion) {
	if !m.cfg.Server.Offers {
		return nil
	}
	if c.taskAskCount++; c.taskAskCount%3 != 0 {
		return nil
	}
	turn := c.taskAskCount / 3
	for i := range 1 + (turn+2)%3 {
		kind := questionKinds[(turn+i)%len(questionKinds)]
		isDeclared := slices.Contains(c.capabilities, kind.capability)
		if c.era == messages.EraModern {
			isDeclared = strings.Contains(string(k.q.Params), quoteJSON(kind.capability))
		}
		if isDeclared {
			all = append(all, taskQuestion{kind: kind})
		}
	}
	return all
}

// requireInput makes a task wait for the input that it asks for next. In the legacy era the question goes to the client that waits for the task's result.
func (m *machine) requireInput(c *conn, t *task) {
	i := t.input
	i.from, i.askedAt, i.tellings = i.to, m.now, 0
	i.to++
	if c.era == messages.EraModern && len(i.questions)-i.from > 1 && m.taskCount%2 == 0 {
		i.to++
	}
	t.state = taskWaits
	m.notifyTask(c, t)
	if t.resultRequest != nil {
		m.sendTaskQuestion(c, t.resultRequest, t)
	}
	from := i.from
	m.scheduleAfter(c, inputBound, func() { m.checkInputGiven(c, t, from) })
}

// inputBound is the time in which a client that waits for a task gives what it asks for, while nothing is wrong: a person takes a fraction of it.
const inputBound = 20 * time.Second

// checkInputGiven judges that a task has been given what it asked for, unless a fault may have kept it away. The agents of a gateway, whose calls
// have ids of another kind, may leave a question without an answer.
func (m *machine) checkInputGiven(c *conn, t *task, from int) {
	if !strings.HasPrefix(t.call.id, "c") {
		return
	}
	if t.input.tellings < 2 && (t.input.from != from || !t.input.questions[from].sent) {
		// It was gone before it knew of the question, which over HTTP nothing tells (seed 20996067); or it had given the task up, and a fault
		// kept the server from heeding that (seed 20985188).
		return
	}
	if t.state != taskWaits || t.input.from != from || t.call.finished || m.isEnded(c) || !c.isUnblocked() || len(m.activeFaults) > 0 || m.lastFaultAt > t.input.askedAt {
		return
	}
	m.reportViolation("the task " + t.id + " asked for input at " + t.input.askedAt.String() + ", which is question " + strconv.Itoa(from+1) + " of it, and was given none")
}

// sendTaskQuestion sends the question of a task as a part of the answer to tasks/result.
//
// 2025-11-25, Related Task Metadata: "All requests, notifications, and responses related to a task MUST include the
// io.modelcontextprotocol/related-task key in their _meta field".
func (m *machine) sendTaskQuestion(c *conn, q *message, t *task) {
	if t.state != taskWaits {
		return
	}
	question := &t.input.questions[t.input.from]
	if question.sent {
		return
	}
	question.sent = true
	id := "ask-" + t.id + numberAfterFirst(t.input.from)
	if c.openQuestions == nil {
		c.openQuestions = map[string]pendingQuestion{}
	}
	c.openQuestions[id] = pendingQuestion{t.call, question.kind}
	params := strings.TrimSuffix(question.kind.params, "}")
	if params != "{" {
		params += ","
	}
	params += `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":` + quoteJSON(t.id) + `}}}`
	m.sendOrHold(c, Send{
		Conn: c.id, Reply: string(q.ID), More: true,
		Body: json.RawMessage(`{"jsonrpc":"2.0","id":` + quoteJSON(id) + `,"method":` + quoteJSON(question.kind.method) + `,"params":` + params + `}`),
	})
}

// checkTaskAnswer judges the client's answer to the question of a task in the legacy era.
func (m *machine) checkTaskAnswer(t *task, result json.RawMessage) {
	if result != nil && !strings.Contains(string(result), quoteJSON(t.id)) {
		m.reportViolation("the task " + t.id + " asked for input, and the answer does not say that it belongs to it: " + messages.Line(string(result), 200))
	}
}

// giveInput lets a task go on with the input that it asked for: to its next question, or to its end.
func (m *machine) giveInput(c *conn, t *task) {
	if t.state != taskWaits {
		return
	}
	t.state = taskWorks
	m.notifyTask(c, t)
	if t.input.to < len(t.input.questions) {
		t.call.token = m.scheduleAfter(c, m.drawAround(taskTime/4), func() { m.requireInput(c, t) })
		return
	}
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
	known := 0
	for i := range t.inputCount() {
		question, response := &t.input.questions[i], p.Responses[inputKey(i)]
		if response == nil {
			continue
		}
		known++
		if question.given {
			continue // a client that saw no answer to the first request sends it again
		}
		m.checkAnswer(question.kind, response)
		question.given = true
		if !slices.ContainsFunc(t.input.asksNow(), func(q taskQuestion) bool { return !q.given }) {
			// The questions stand in the status until the task has taken the answers, and a client must not answer them again.
			t.call.token = m.scheduleAfter(c, m.drawAround(takingTime), func() { m.giveInput(c, t) })
		}
	}
	if known == 0 || known < len(p.Responses) {
		m.reportViolation("the task " + t.id + " was given input that it has not asked for, or none")
	}
	m.answerResult(c, q, "{}")
}

// takingTime is the mean time in which a task of the modern era takes the input that it was given: longer than taskPoll.
const takingTime = time.Second

// inputKey names a question of a task by its place.
func inputKey(place int) string { return "it" + numberAfterFirst(place) }

// numberAfterFirst tells the further questions of a task from the first one.
func numberAfterFirst(place int) string {
	if place == 0 {
		return ""
	}
	return "-" + strconv.Itoa(place)
}

// inputCount is how many questions a task has asked.
func (t *task) inputCount() int {
	if t.input == nil {
		return 0
	}
	return t.input.to
}

// encodeInputRequests encodes the member inputRequests of a status of the modern era, empty for a task that asks for nothing.
func (t *task) encodeInputRequests() string {
	if t.state != taskWaits {
		return ""
	}
	text := ""
	for i, q := range t.input.asksNow() {
		if i > 0 {
			text += ","
		}
		text += quoteJSON(inputKey(t.input.from+i)) + `:{"method":` + quoteJSON(q.kind.method) + `,"params":` + q.kind.params + `}`
	}
	return `,"inputRequests":{` + text + `}`
}

// notifyTask tells a client of the legacy era the state of a task.
func (m *machine) notifyTask(c *conn, t *task) {
	if c.era != messages.EraModern {
		e := notifiedEvent(c.id, "notifications/tasks/status")
		e.Task, e.Name = t.id, t.state
		m.sendRecorded(c, e, t.encodeStatus(m.now, c.era, false), "")
	}
}
