package peer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// questionKind is one kind of question, by the capability that a client must have said.
type questionKind struct{ capability, method, params string }

// questionKinds are what a server may ask.
var questionKinds = []questionKind{
	{"elicitation", "elicitation/create", `{"message":"Go on?","requestedSchema":{"type":"object","properties":{"go":{"type":"boolean"},"for":{"type":"string"}}}}`},
	{"sampling", "sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"Go on?"}}],"maxTokens":10}`},
	{"roots", "roots/list", `{}`},
}

// askBeforeCall asks the caller of a call something before it begins, and reports whether it does.
func (m *machine) askBeforeCall(c *conn, k *call) bool {
	if !m.cfg.Server.Offers || c.era == messages.EraModern || k.q.task != nil {
		return false
	}
	if c.askCount++; c.askCount%3 != 0 {
		return false
	}
	q := questionKinds[c.askCount/3%len(questionKinds)]
	if !slices.Contains(c.capabilities, q.capability) {
		return false
	}
	id := "ask-" + strconv.Itoa(c.askCount)
	if c.openQuestions == nil {
		c.openQuestions = map[string]pendingQuestion{}
	}
	c.openQuestions[id] = pendingQuestion{k, q}
	m.sendOrHold(c, Send{
		Conn: c.id, Reply: string(k.q.ID), More: true,
		Body: json.RawMessage(`{"jsonrpc":"2.0","id":` + quoteJSON(id) + `,"method":` + quoteJSON(q.method) + `,"params":` + q.params + `}`),
	})
	return true
}

// pendingQuestion is a call that waits for an answer.
type pendingQuestion struct {
	call *call
	kind questionKind
}

// handleAnswer takes the answer to a question: whatever it is, the call goes on.
func (m *machine) handleAnswer(c *conn, body []byte) {
	var p struct {
		ID     string          `json:"id"`
		Result json.RawMessage `json:"result"`
	}
	_ = json.Unmarshal(body, &p) // an id that is no text is none of ours
	if w, ok := c.openQuestions[p.ID]; ok {
		delete(c.openQuestions, p.ID)
		m.checkAnswer(w.kind, p.Result)
		m.scheduleCall(c, w.call)
	}
}

// checkAnswer judges what was answered: the server's own name stands in it, so that what somebody said to another server is seen. An answer
// that is a refusal may have its reasons.
func (m *machine) checkAnswer(kind questionKind, result json.RawMessage) {
	if result == nil {
		return
	}
	form := map[string]string{"elicitation": `"action":"accept"`, "sampling": `"role":"assistant"`, "roots": `"roots":[`}[kind.capability]
	if text := string(result); !strings.Contains(text, form) || !strings.Contains(text, m.cfg.Server.Name) {
		m.reportViolation("it asked for " + kind.method + " and was answered " + messages.Line(text, 200))
	}
}

// reportViolation notes what no client may do.
func (m *machine) reportViolation(text string) {
	m.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I20", Text: text})
}

// askBeforeRead asks whoever reads something for input before there is an answer, in every third read, and reports whether it does: in the modern era
// by rounds of the request itself, in the legacy one by sending the person to a URL.
func (m *machine) askBeforeRead(c *conn, q *message) bool {
	if c.era != messages.EraModern {
		return m.requireElicitation(c, q)
	}
	var p struct {
		State     *string                    `json:"requestState"`
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	_ = json.Unmarshal(q.Params, &p) // what says nothing answers nothing
	if p.State != nil {
		kind, known := m.inputRounds[*p.State]
		if !known {
			m.reportViolation("a request came back with the state " + quoteJSON(messages.Line(*p.State, 60)) + ", which it has given nobody")
			return false
		}
		if kind.capability == "" { // it wanted nothing but time
			return false
		}
		if p.Responses["it"] == nil {
			m.reportViolation("a request came back without the input that it asked for")
			return false
		}
		m.checkAnswer(kind, p.Responses["it"])
		return false
	}
	if c.askCount++; c.askCount%3 != 0 {
		return false
	}
	kind, inputMember := questionKinds[c.askCount/3%len(questionKinds)], ""
	if c.askCount%12 == 0 {
		kind = questionKind{}
	} else if !strings.Contains(string(q.Params), quoteJSON(kind.capability)) {
		return false
	} else {
		inputMember = `,"inputRequests":{"it":{"method":` + quoteJSON(kind.method) + `,"params":` + kind.params + `}}`
	}
	state := "round " + strconv.Itoa(c.id) + "-" + strconv.Itoa(c.askCount)
	if m.inputRounds == nil {
		m.inputRounds = map[string]questionKind{}
	}
	m.inputRounds[state] = kind
	m.sendAnswer(c, &answer{q: q, result: []byte(`{"requestState":` + quoteJSON(state) + inputMember + `}`), resultType: "input_required"})
	return true
}

// elicitationTime is how long a person is away.
const elicitationTime = 700 * time.Millisecond

// requireElicitation refuses a read until the person has been somewhere.
//
// 2025-11-25, URL Elicitation Required Error: "When a request cannot be processed until an elicitation is completed, the server MAY return a
// URLElicitationRequiredError (code -32042)".
func (m *machine) requireElicitation(c *conn, q *message) bool {
	if !slices.Contains(c.capabilities, "elicitation url") {
		return false
	}
	if c.askCount++; c.askCount%3 != 0 {
		return false
	}
	id := "visit-" + strconv.Itoa(c.id) + "-" + strconv.Itoa(c.askCount)
	m.answerError(c, q, -32042, "This needs a visit", `{"elicitations":[{"mode":"url","elicitationId":`+quoteJSON(id)+
		`,"url":"https://`+m.cfg.Server.Name+`.sim/visit","message":"Please go there."}]}`)
	if c.askCount%2 == 0 { // it need not say when
		m.scheduleAfter(c, elicitationTime, func() {
			m.sendNotification(c, "notifications/elicitation/complete", `{"elicitationId":`+quoteJSON(id)+`}`, "")
		})
	}
	return true
}
