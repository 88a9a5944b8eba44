package peer

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// messagePart groups methods for the faults that strike only some of them.
type messagePart int

const (
	partHandshake messagePart = iota
	partListing
	partCalling
	partOther
)

// partOf returns the group of a method.
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

// answer is one answer between its making and its sending, where the faults may change it.
type answer struct {
	// q is the request.
	q *message
	// result is the result as JSON, nil for an error. status is the HTTP status of the error, 0 if the error travels with
	// status 200.
	result []byte
	code   int
	text   string
	data   string
	status int

	// send carries the options of the sending (Cut, Chunk, Type, After); deliverAnswer fills in Conn, Reply and Body. duplicate
	// sends the answer twice.
	send      Send
	duplicate bool
	// omitResultType leaves out the member resultType that the modern era requires (fault modern-breach).
	omitResultType bool
	// These make the result of a call: pad is the length of the padding in bytes, structured the structured content as JSON,
	// isError whether the tool failed, and extraTexts further content blocks.
	pad        int
	structured string
	isError    bool
	extraTexts []string
	// resultType is the resultType of a result of the modern era; empty means "complete".
	resultType string
	// page is set if the answer is a page of the tool list.
	page *toolPage
}

// answerResult answers a request with a result, given as a JSON object.
func (m *machine) answerResult(c *conn, q *message, result string) {
	m.sendAnswer(c, &answer{q: q, result: []byte(result)})
}

// answerError answers a request with an error, and a notification not at all. A message that could not be read at all has
// neither id nor method and is answered without an id.
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

// rejectRequest refuses a request because validateRequest found it malformed.
func (m *machine) rejectRequest(c *conn, q *message, problem *requestProblem) {
	a := &answer{q: q, code: problem.code, text: problem.text, data: problem.data}
	if m.cfg.Server.Kind == messages.HTTP {
		a.status = 400
	}
	m.sendAnswer(c, a)
}

// sendAnswer sends an answer, unless a fault takes it. The answer of a call that runs as a task goes to the task.
func (m *machine) sendAnswer(c *conn, a *answer) {
	if t := a.q.task; t != nil {
		m.endTask(c, t, a)
		return
	}
	// A hook may end the connection; the answer is then lost.
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

// deliverAnswer encodes an answer and sends it: an error with a status of its own as Status, everything else as Send.
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

// encodeAnswer encodes an answer as a message.
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
		// The members of the result follow its opening brace; an empty result needs no comma.
		b = append(b, ',')
	}
	b = append(b, a.result[1:]...)
	return append(b, '}')
}

// scheduleAnswer answers a request once the server has started and the answer has taken its time (the server's latency plus
// what faults add). The handshake itself waits only for the start. It returns the token of the wait.
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
	// A client may not cancel its handshake, and calls keep their token themselves.
	if token != 0 && part != partHandshake && part != partCalling {
		c.requestTokens[id] = token
	}
	return token
}

// sendNotification records a notification and sends it. params is JSON or empty. reply is the id of the request in whose
// exchange it goes, empty if it belongs to none.
func (m *machine) sendNotification(c *conn, method, params, reply string) {
	m.sendRecorded(c, notifiedEvent(c.id, method), params, reply)
}

// sendRecorded is sendNotification with the event to record, which names the method.
func (m *machine) sendRecorded(c *conn, e history.Event, params, reply string) {
	body := `{"jsonrpc":"2.0","method":` + quoteJSON(e.Method)
	if params != "" {
		body += `,"params":` + params
	}
	m.sendOrHold(c, Note{e})
	m.sendOrHold(c, Send{Conn: c.id, Reply: reply, More: reply != "", Body: json.RawMessage(body + "}")})
}
