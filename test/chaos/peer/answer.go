package peer

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// messagePart is what a message belongs to, for the faults that look only at some.
type messagePart int

const (
	partHandshake messagePart = iota
	partListing
	partCalling
	partOther
)

func partOf(method string) messagePart {
	switch method {
	case "initialize", "server/discover", "notifications/initialized":
		return partHandshake
	case "tools/list":
		return partListing
	case "tools/call":
		return partCalling
	}
	return partOther
}

// answer is one answer on its way.
type answer struct {
	q *message
	// result is the result as JSON, nil if it is an error. status is the HTTP status of an error, 0 if it has none of its
	// own.
	result []byte
	code   int
	text   string
	data   string
	status int

	// send is how it is sent; Conn, Reply and Body are filled in. again says that it comes twice.
	send      Send
	duplicate bool
	// omitResultType leaves resultType out.
	omitResultType bool
	// pad, structured, isError and more make the result of a call: how long it is, its structured content, whether the tool
	// failed, and further texts.
	pad        int
	structured string
	isError    bool
	extraTexts []string
	// resultType is the resultType of a result of the modern era, "complete" if empty.
	resultType string
	// page is set if it is one of the tool list.
	page *toolPage
}

// answerResult answers a request.
func (m *machine) answerResult(c *conn, q *message, result string) {
	m.sendAnswer(c, &answer{q: q, result: []byte(result)})
}

// answerError answers a request with an error; a notification is not answered. What cannot be read at all is answered without
// an id.
func (m *machine) answerError(c *conn, q *message, code int, text, data string) {
	a := &answer{q: q, code: code, text: text, data: data}
	if q.ID == nil && q.task == nil && q.Method != "" {
		return
	}
	if m.cfg.Server.Kind == messages.HTTP {
		switch {
		case code == codeParse, code == codeInvalidRequest && q.ID == nil:
			a.status = 400
		case c.era == messages.EraModern && code == codeMethodNotFound:
			// 2026-07-28: "If the server does not implement the requested RPC method, it MUST respond with 404 Not Found and a
			// JSON-RPC error with code -32601".
			a.status = 404
		}
	}
	m.sendAnswer(c, a)
}

// rejectRequest refuses a request for what is wrong with it as a message.
//
// 2026-07-28: "On HTTP, the response status MUST be 400 Bad Request."
func (m *machine) rejectRequest(c *conn, q *message, problem *requestProblem) {
	a := &answer{q: q, code: problem.code, text: problem.text, data: problem.data}
	if m.cfg.Server.Kind == messages.HTTP {
		a.status = 400
	}
	m.sendAnswer(c, a)
}

// sendAnswer sends an answer, unless a fault takes it.
func (m *machine) sendAnswer(c *conn, a *answer) {
	if t := a.q.task; t != nil {
		m.endTask(c, t, a)
		return
	}
	for _, f := range slices.Clone(m.activeFaults) {
		if m.isEnded(c) || f.hooks.beforeAnswer != nil && f.hooks.beforeAnswer(m, f, c, a) {
			return
		}
	}
	if a.result != nil && partOf(a.q.Method) == partHandshake {
		c.handshakeDone = true
	}
	m.deliverAnswer(c, a)
	for _, f := range slices.Clone(m.activeFaults) {
		if f.hooks.afterAnswer != nil && !m.isEnded(c) {
			f.hooks.afterAnswer(m, f, c, a)
		}
	}
}

// deliverAnswer is the end of answer.
func (m *machine) deliverAnswer(c *conn, a *answer) {
	body := m.encodeAnswer(a, c.era)
	if a.status != 0 {
		m.sendOrHold(c, Status{
			Conn: c.id, Reply: string(a.q.ID), Code: a.status, Header: jsonHeader(), Body: body,
		})
		return
	}
	s := a.send
	s.Conn, s.Reply, s.Body = c.id, string(a.q.ID), body
	if a.duplicate {
		first := s
		// Over HTTP both go in one response, which the first one must not end.
		first.More = m.cfg.Server.Kind == messages.HTTP
		m.sendOrHold(c, first)
	}
	m.sendOrHold(c, s)
}

// encodeAnswer is the message.
//
// 2026-07-28: "The result MUST include a resultType field", and "servers SHOULD include" what they are "in every result's
// _meta".
func (m *machine) encodeAnswer(a *answer, era messages.Era) []byte {
	if a.result == nil {
		return errorBody(a.q.ID, a.code, a.text, a.data)
	}
	b := make([]byte, 0, len(a.result)+len(a.q.ID)+64)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, a.q.ID...)
	b = append(b, `,"result":`...)
	if era != messages.EraModern {
		b = append(b, a.result...)
		return append(b, '}')
	}
	b = append(b, '{')
	if !a.omitResultType {
		b = append(b, `"resultType":`+quoteJSON(cmp.Or(a.resultType, "complete"))+`,`...)
	}
	b = append(b, `"_meta":{"`+metaPrefix+`serverInfo":`+m.serverInfo()+`}`...)
	if len(a.result) > len(`{}`) {
		b = append(b, ',')
	}
	b = append(b, a.result[1:]...)
	return append(b, '}')
}

// scheduleAnswer lets a request be answered when the server has started and the answer has taken its time.
func (m *machine) scheduleAnswer(c *conn, q *message, do func()) (token int) {
	var d time.Duration
	part := partOf(q.Method)
	if m.now < c.readyAt {
		d = c.readyAt - m.now
		if part != partHandshake {
			d += m.drawAround(m.cfg.Server.Latency)
		}
	} else {
		d = m.drawAround(m.cfg.Server.Latency)
	}
	for _, f := range m.activeFaults {
		if f.hooks.extraDelay != nil {
			d += f.hooks.extraDelay(m, f, c, q)
		}
	}
	id := string(q.ID)
	token = m.scheduleAfter(c, d, func() {
		delete(c.requestTokens, id)
		do()
	})
	if token != 0 && part != partHandshake && part != partCalling { // nobody may cancel the one, and calls know it themselves
		c.requestTokens[id] = token
	}
	return token
}

// sendNotification sends a notification. params may be empty; reply is the request in whose exchange it goes, if any.
func (m *machine) sendNotification(c *conn, method, params, reply string) {
	body := `{"jsonrpc":"2.0","method":` + quoteJSON(method)
	if params != "" {
		body += `,"params":` + params
	}
	m.sendOrHold(c, Note{notifiedEvent(c.id, method)})
	m.sendOrHold(c, Send{Conn: c.id, Reply: reply, More: reply != "", Body: json.RawMessage(body + "}")})
}
