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

// asking is one kind of question, by the capability that a client must have said.
type asking struct{ needs, method, params string }

// questions are what a server may ask.
var questions = []asking{
	{"elicitation", "elicitation/create", `{"message":"Go on?","requestedSchema":{"type":"object","properties":{"go":{"type":"boolean"},"for":{"type":"string"}}}}`},
	{"sampling", "sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"Go on?"}}],"maxTokens":10}`},
	{"roots", "roots/list", `{}`},
}

// question asks the caller of a call something before it begins, and reports whether it does.
func (m *machine) question(c *conn, k *call) bool {
	if !m.cfg.Server.Offers || c.era == messages.EraModern || k.q.task != nil {
		return false
	}
	if c.asks++; c.asks%3 != 0 {
		return false
	}
	q := questions[c.asks/3%len(questions)]
	if !slices.Contains(c.can, q.needs) {
		return false
	}
	id := "ask-" + strconv.Itoa(c.asks)
	if c.questions == nil {
		c.questions = map[string]waiting{}
	}
	c.questions[id] = waiting{k, q}
	m.say(c, Send{
		Conn: c.id, Reply: string(k.q.ID), More: true,
		Body: json.RawMessage(`{"jsonrpc":"2.0","id":` + quote(id) + `,"method":` + quote(q.method) + `,"params":` + q.params + `}`),
	})
	return true
}

// waiting is a call that waits for an answer.
type waiting struct {
	call  *call
	asked asking
}

// answered takes the answer to a question: whatever it is, the call goes on.
func (m *machine) answered(c *conn, body []byte) {
	var p struct {
		ID     string          `json:"id"`
		Result json.RawMessage `json:"result"`
	}
	_ = json.Unmarshal(body, &p) // an id that is no text is none of ours
	if w, ok := c.questions[p.ID]; ok {
		delete(c.questions, p.ID)
		m.given(w.asked, p.Result)
		m.begin(c, w.call)
	}
}

// given judges what was answered: the server's own name stands in it, so that what somebody said to another server is seen. An answer
// that is a refusal may have its reasons.
func (m *machine) given(to asking, result json.RawMessage) {
	if result == nil {
		return
	}
	form := map[string]string{"elicitation": `"action":"accept"`, "sampling": `"role":"assistant"`, "roots": `"roots":[`}[to.needs]
	if text := string(result); !strings.Contains(text, form) || !strings.Contains(text, m.cfg.Server.Name) {
		m.wrong("it asked for " + to.method + " and was answered " + messages.Line(text, 200))
	}
}

// wrong notes what no client may do.
func (m *machine) wrong(text string) {
	m.note(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I20", Text: text})
}

// wants asks whoever reads something for input before there is an answer, in every third read, and reports whether it does: in the modern era
// by rounds of the request itself, in the legacy one by sending the person to a URL.
func (m *machine) wants(c *conn, q *message) bool {
	if c.era != messages.EraModern {
		return m.sendsAway(c, q)
	}
	var p struct {
		State     *string                    `json:"requestState"`
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	_ = json.Unmarshal(q.Params, &p) // what says nothing answers nothing
	if p.State != nil {
		to, known := m.rounds[*p.State]
		if !known {
			m.wrong("a request came back with the state " + quote(messages.Line(*p.State, 60)) + ", which it has given nobody")
			return false
		}
		if to.needs == "" { // it wanted nothing but time
			return false
		}
		if p.Responses["it"] == nil {
			m.wrong("a request came back without the input that it asked for")
			return false
		}
		m.given(to, p.Responses["it"])
		return false
	}
	if c.asks++; c.asks%3 != 0 {
		return false
	}
	to, asks := questions[c.asks/3%len(questions)], ""
	if c.asks%12 == 0 {
		to = asking{}
	} else if !strings.Contains(string(q.Params), quote(to.needs)) {
		return false
	} else {
		asks = `,"inputRequests":{"it":{"method":` + quote(to.method) + `,"params":` + to.params + `}}`
	}
	state := "round " + strconv.Itoa(c.id) + "-" + strconv.Itoa(c.asks)
	if m.rounds == nil {
		m.rounds = map[string]asking{}
	}
	m.rounds[state] = to
	m.answer(c, &answer{q: q, result: []byte(`{"requestState":` + quote(state) + asks + `}`), kind: "input_required"})
	return true
}

// visitTime is how long a person is away.
const visitTime = 700 * time.Millisecond

// sendsAway refuses a read until the person has been somewhere.
//
// 2025-11-25, URL Elicitation Required Error: "When a request cannot be processed until an elicitation is completed, the server MAY return a
// URLElicitationRequiredError (code -32042)".
func (m *machine) sendsAway(c *conn, q *message) bool {
	if !slices.Contains(c.can, "elicitation url") {
		return false
	}
	if c.asks++; c.asks%3 != 0 {
		return false
	}
	id := "visit-" + strconv.Itoa(c.id) + "-" + strconv.Itoa(c.asks)
	m.refuse(c, q, -32042, "This needs a visit", `{"elicitations":[{"mode":"url","elicitationId":`+quote(id)+
		`,"url":"https://`+m.cfg.Server.Name+`.sim/visit","message":"Please go there."}]}`)
	if c.asks%2 == 0 { // it need not say when
		m.after(c, visitTime, func() { m.notify(c, "notifications/elicitation/complete", `{"elicitationId":`+quote(id)+`}`, "") })
	}
	return true
}
