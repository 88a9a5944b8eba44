package peer

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// questionKind is one kind of question of a server to its client: the capability that the client must have declared, the
// method, and its params as JSON, in which questionMark stands for what the question is about.
type questionKind struct{ capability, method, params string }

// questionMark is replaced by the call, or the state of the request, and the server that asks, so that whoever is asked can see whether
// the question is theirs.
const questionMark = "Go on?"

// paramsFor returns the params of a question about something.
func (q questionKind) paramsFor(about, server string) string {
	text := quoteJSON("Go on with " + about + " of " + server + "?")
	return strings.ReplaceAll(q.params, questionMark, text[1:len(text)-1])
}

// questionKinds are the questions that a server may ask, in the order in which it takes turns.
var questionKinds = []questionKind{
	{"elicitation", "elicitation/create", `{"message":"Go on?","requestedSchema":{"type":"object","properties":{"go":{"type":"boolean"},"for":{"type":"string"}}}}`},
	{"sampling", "sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"Go on?"}}],"maxTokens":10}`},
	{"roots", "roots/list", `{}`},
}

// callQuestions are those about a call: one more sends the person to an address.
var callQuestions = append(slices.Clone(questionKinds),
	questionKind{"elicitation url", "elicitation/create", `{"mode":"url","message":"Go on?","elicitationId":"e-1","url":"https://chaos.sim/visit"}`})

// askBeforeCall asks the caller of every third call a question before the call runs, and reports whether it did; handleAnswer
// then asks once more, or schedules the call. It asks nothing in the modern era, where a server may not send requests, and nothing of a call that
// runs as a task.
func (m *machine) askBeforeCall(c *conn, k *call) bool {
	if !m.cfg.Server.Offers || c.era == messages.EraModern || k.q.task != nil {
		return false
	}
	if c.askCount++; c.askCount%3 != 0 {
		return false
	}
	q := callQuestions[c.askCount/3%len(callQuestions)]
	if !slices.Contains(c.capabilities, q.capability) {
		return false
	}
	id := "ask-" + strconv.Itoa(c.askCount)
	m.askAbout(c, k, q, id)
	if c.askCount/3%5 == 2 {
		m.scheduleAfter(c, withdrawTime, func() { m.withdrawQuestion(c, id) })
	}
	return true
}

// askAbout asks the caller of a call a question before the call runs.
func (m *machine) askAbout(c *conn, k *call, q questionKind, id string) {
	params := q.paramsFor(k.id, m.cfg.Server.Name)
	if c.openQuestions == nil {
		c.openQuestions = map[string]pendingQuestion{}
	}
	c.openQuestions[id] = pendingQuestion{k, q}
	m.sendOrHold(c, Note{q.eventOf(history.Inquiry, c.id, id, k.id, []byte(params))})
	m.sendOrHold(c, Send{
		Conn: c.id, Reply: string(k.q.ID), More: true,
		Body: json.RawMessage(`{"jsonrpc":"2.0","id":` + quoteJSON(id) + `,"method":` + quoteJSON(q.method) + `,"params":` + params + `}`),
	})
}

// askAgain asks a second question about every second of the calls that have asked, when the first one is answered, and reports whether it did.
func (m *machine) askAgain(c *conn, k *call, answered string) bool {
	number, err := strconv.Atoi(strings.TrimPrefix(answered, "ask-"))
	if err != nil || number/3%2 == 0 || k.finished || k.scheduled {
		return false // that was the second one, which has another id
	}
	q := callQuestions[(number/3+1)%len(callQuestions)]
	if !slices.Contains(c.capabilities, q.capability) {
		return false
	}
	m.askAbout(c, k, q, answered+"-more")
	return true
}

// eventOf describes a question about a call, or the answer to it, with the hash of what it says.
func (q questionKind) eventOf(kind history.Kind, conn int, id, call string, content []byte) history.Event {
	e := history.Event{Side: history.World, Kind: kind, Conn: conn, Method: q.method, ID: id, Call: call, Hash: history.HashContent(content)}
	if q.capability == "elicitation url" {
		e.Name = "url"
	}
	return e
}

// withdrawTime is the time after which a server takes back every fifth of its questions: shorter than any person of the harness takes to
// answer.
const withdrawTime = 120 * time.Millisecond

// withdrawQuestion takes a question back that has no answer yet, and lets its call go on without.
//
// 2025-11-25, Cancellation: "Receivers of cancellation notifications SHOULD: Stop processing the cancelled request … Not send a response for
// the cancelled request".
func (m *machine) withdrawQuestion(c *conn, id string) {
	w, open := c.openQuestions[id]
	// The stream of a call that its caller has taken back carries nothing any more.
	if !open || m.isEnded(c) || w.call.finished {
		return
	}
	delete(c.openQuestions, id)
	if c.withdrawn == nil {
		c.withdrawn = map[string]time.Duration{}
	}
	// What faults hold back comes late, and is answered late; the stream of a call that one has cut is open again only later.
	if asked := m.now - withdrawTime; len(m.activeFaults) == 0 && (m.lastFaultAt == 0 || m.lastFaultAt < asked) {
		c.withdrawn[id] = m.now
	}
	e := notifiedEvent(c.id, "notifications/cancelled")
	e.Call = w.call.id
	m.sendOrHold(c, Note{e})
	m.sendOrHold(c, Send{Conn: c.id, Reply: string(w.call.q.ID), More: true, Body: json.RawMessage(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` +
		quoteJSON(id) + `,"reason":"It is not asked any more"}}`)})
	m.scheduleCall(c, w.call)
}

// checkWithdrawn judges that nobody answers a question which was taken back some time ago.
func (m *machine) checkWithdrawn(c *conn, id string) {
	if at, withdrawn := c.withdrawn[id]; withdrawn && m.now > at+withdrawnBound && len(m.activeFaults) == 0 {
		m.reportViolation("it took the question " + id + " back " + (m.now - at).String() + " ago, and was given an answer to it")
	}
}

// withdrawnBound is the time in which an answer comes that was on its way when its question was taken back.
const withdrawnBound = 20 * time.Millisecond

// pendingQuestion is a call that waits for the answer to a question.
type pendingQuestion struct {
	call *call
	kind questionKind
}

// handleAnswer takes the client's answer to a question. The call goes on whether the answer is a result or a refusal.
func (m *machine) handleAnswer(c *conn, body []byte) {
	var p struct {
		ID     string          `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	// The ids of questions are strings; an id of another type matches none of them.
	_ = json.Unmarshal(body, &p)
	m.checkWithdrawn(c, p.ID)
	if w, ok := c.openQuestions[p.ID]; ok {
		delete(c.openQuestions, p.ID)
		m.checkAnswer(w.kind, p.Result)
		if t := w.call.q.task; t != nil {
			m.checkTaskAnswer(t, p.Result)
			m.giveInput(c, t)
			return
		}
		e := w.kind.eventOf(history.Inquired, c.id, p.ID, w.call.id, p.Result)
		if p.Result == nil {
			e.Code, e.Hash = codeOfError(p.Error), history.HashContent(p.Error)
		}
		m.recordEvent(e)
		if !m.askAgain(c, w.call, p.ID) {
			m.scheduleCall(c, w.call)
		}
	}
}

// checkAnswer checks the form of an answer, and that it holds this server's name: the users of the harness put in the name of
// the server that asks, so that an answer to another server's question is seen. An error (nil result) may have its reasons.
func (m *machine) checkAnswer(kind questionKind, result json.RawMessage) {
	if result == nil {
		return
	}
	form := map[string]string{"elicitation": `"action":"`, "elicitation url": `"action":"`, "sampling": `"role":"assistant"`, "roots": `"roots":[`}[kind.capability]
	isNamed := kind.capability == "elicitation url" || strings.Contains(string(result), m.cfg.Server.Name) // a visit has no content
	answered := "it asked for " + kind.method + " and was given another answer than the program gave, "
	switch text := string(result); {
	case !strings.Contains(text, form):
		m.reportViolation(answered + "without " + form + ": " + messages.Line(text, 200))
	case !isNamed:
		m.reportViolation(answered + "without the name of the server, which the program had put in: " + messages.Line(text, 200))
	}
}

// codeOfError returns the code of an error, -1 if it has none.
func codeOfError(problem json.RawMessage) int {
	var e struct {
		Code int `json:"code"`
	}
	_ = json.Unmarshal(problem, &e) // without an error the code stays 0
	return cmp.Or(e.Code, -1)
}

// reportViolation records that the client did what no client may do.
func (m *machine) reportViolation(text string) {
	m.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I20", Text: text})
}

// askBeforeRead asks for input, or for a retry alone, before every third read, and reports whether it did. In the modern era the request itself is
// answered with input_required and comes back with the input; in the legacy era the server sends the person to a URL.
func (m *machine) askBeforeRead(c *conn, q *message) bool {
	if c.era != messages.EraModern {
		return m.requireElicitation(c, q)
	}
	var p struct {
		State     *string                    `json:"requestState"`
		Responses map[string]json.RawMessage `json:"inputResponses"`
	}
	// Params without these members are a first request.
	_ = json.Unmarshal(q.Params, &p)
	if p.State != nil {
		kind := m.inputRounds[*p.State]
		if kind == nil {
			m.reportViolation("a request came back with the state " + quoteJSON(messages.Line(*p.State, 60)) + ", which it has given nobody")
			return false
		}
		m.receiveRound(kind)
		if now := askedFor(q); now != kind.asked {
			m.reportViolation("it asked for input to " + q.Method + " of " + messages.Line(kind.asked, 200) + ", and the request came back with the input and with " +
				messages.Line(now, 200))
		}
		// The server had asked for nothing but a retry with its state.
		if kind.capability == "" {
			return false
		}
		if p.Responses["it"] == nil {
			m.reportViolation("a request came back without the input that it asked for")
			return false
		}
		m.checkAnswer(kind.questionKind, p.Responses["it"])
		return false
	}
	if c.askCount++; c.askCount%3 != 0 {
		return false
	}
	kind, inputMember := questionKinds[c.askCount/3%len(questionKinds)], ""
	state := "round " + strconv.Itoa(c.id) + "-" + strconv.Itoa(c.askCount)
	// A server over HTTP that was started again has the same connections, and has forgotten what it counted for them.
	for m.inputRounds[state] != nil {
		state += "+"
	}
	// Every second question asks for no input at all; the client must still bring the state back.
	if c.askCount%6 == 0 {
		kind = questionKind{}
	} else if !strings.Contains(string(q.Params), quoteJSON(kind.capability)) {
		return false
	} else {
		inputMember = `,"inputRequests":{"it":{"method":` + quoteJSON(kind.method) + `,"params":` + kind.paramsFor("a-read", m.cfg.Server.Name) + `}}`
	}
	if m.inputRounds == nil {
		m.inputRounds = map[string]*inputRound{}
	}
	round := &inputRound{questionKind: kind, asked: askedFor(q), at: m.now}
	m.inputRounds[state] = round
	m.awaitRound(c, round)
	m.sendAnswer(c, &answer{q: q, result: []byte(`{"requestState":` + quoteJSON(state) + inputMember + `}`), resultType: "input_required"})
	return true
}

// askedFor returns what a request is about, which is the same in each of its rounds: the members of its params but for those of the round
// and _meta.
func askedFor(q *message) string {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(q.Params, &members) // params that are no object are about nothing
	for _, name := range []string{"_meta", "requestState", "inputResponses"} {
		delete(members, name)
	}
	text, _ := json.Marshal(members) // a map of JSON values can be written, in the order of its keys
	return string(text)
}

// elicitationTime is the time that the simulated person needs at the URL.
const elicitationTime = 700 * time.Millisecond

// requireElicitation refuses every third read until the person has visited a URL, and reports whether it did.
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
	// The notification of the completion is optional, so that only every second refusal is followed by one.
	if c.askCount%2 == 0 {
		m.scheduleAfter(c, elicitationTime, func() {
			m.sendNotification(c, "notifications/elicitation/complete", `{"elicitationId":`+quoteJSON(id)+`}`, "")
		})
	}
	return true
}
