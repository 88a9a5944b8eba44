package peer

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// part is what a message belongs to, for the faults that look only at some.
type part int

const (
	handshake part = iota
	listing
	calling
	other
)

func partOf(method string) part {
	switch method {
	case "initialize", "server/discover", "notifications/initialized":
		return handshake
	case "tools/list":
		return listing
	case "tools/call":
		return calling
	}
	return other
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
	send  Send
	again bool
	// plain leaves resultType out.
	plain bool
	// pad, structured, isError and more make the result of a call: how long it is, its structured content, whether the tool
	// failed, and further texts.
	pad        int
	structured string
	isError    bool
	more       []string
	// kind is the resultType of a result of the modern era, "complete" if empty.
	kind string
	// page is set if it is one of the tool list.
	page *page
}

// result answers a request.
func (m *machine) result(c *conn, q *message, result string) {
	m.answer(c, &answer{q: q, result: []byte(result)})
}

// refuse answers a request with an error; a notification is not answered. What cannot be read at all is answered without
// an id.
func (m *machine) refuse(c *conn, q *message, code int, text, data string) {
	a := &answer{q: q, code: code, text: text, data: data}
	if q.ID == nil && q.task == nil && q.Method != "" {
		return
	}
	if m.cfg.Server.Kind == messages.HTTP {
		switch {
		case code == codeParse, code == codeInvalidRequest && q.ID == nil:
			a.status = 400
		case c.era == messages.EraModern && code == codeNoMethod:
			// 2026-07-28: "If the server does not implement the requested RPC method, it MUST respond with 404 Not Found and a
			// JSON-RPC error with code -32601".
			a.status = 404
		}
	}
	m.answer(c, a)
}

// reject refuses a request for what is wrong with it as a message.
//
// 2026-07-28: "On HTTP, the response status MUST be 400 Bad Request."
func (m *machine) reject(c *conn, q *message, wrong *flaw) {
	a := &answer{q: q, code: wrong.code, text: wrong.text, data: wrong.data}
	if m.cfg.Server.Kind == messages.HTTP {
		a.status = 400
	}
	m.answer(c, a)
}

// answer sends an answer, unless a fault takes it.
func (m *machine) answer(c *conn, a *answer) {
	if t := a.q.task; t != nil {
		m.endTask(c, t, a)
		return
	}
	for _, f := range slices.Clone(m.faults) {
		if m.over(c) || f.hooks.answer != nil && f.hooks.answer(m, f, c, a) {
			return
		}
	}
	if a.result != nil && partOf(a.q.Method) == handshake {
		c.greeted = true
	}
	m.send(c, a)
	for _, f := range slices.Clone(m.faults) {
		if f.hooks.answered != nil && !m.over(c) {
			f.hooks.answered(m, f, c, a)
		}
	}
}

// send is the end of answer.
func (m *machine) send(c *conn, a *answer) {
	body := m.body(a, c.era)
	if a.status != 0 {
		m.say(c, Status{
			Conn: c.id, Reply: string(a.q.ID), Code: a.status, Header: ofJSON(), Body: body,
		})
		return
	}
	s := a.send
	s.Conn, s.Reply, s.Body = c.id, string(a.q.ID), body
	if a.again {
		first := s
		// Over HTTP both go in one response, which the first one must not end.
		first.More = m.cfg.Server.Kind == messages.HTTP
		m.say(c, first)
	}
	m.say(c, s)
}

// body is the message.
//
// 2026-07-28: "The result MUST include a resultType field", and "servers SHOULD include" what they are "in every result's
// _meta".
func (m *machine) body(a *answer, era messages.Era) []byte {
	if a.result == nil {
		return failure(a.q.ID, a.code, a.text, a.data)
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
	if !a.plain {
		b = append(b, `"resultType":`+quote(cmp.Or(a.kind, "complete"))+`,`...)
	}
	b = append(b, `"_meta":{"`+metaPrefix+`serverInfo":`+m.info()+`}`...)
	if len(a.result) > len(`{}`) {
		b = append(b, ',')
	}
	b = append(b, a.result[1:]...)
	return append(b, '}')
}

// later lets a request be answered when the server has started and the answer has taken its time.
func (m *machine) later(c *conn, q *message, do func()) (token int) {
	var d time.Duration
	part := partOf(q.Method)
	if m.now < c.ready {
		d = c.ready - m.now
		if part != handshake {
			d += m.about(m.cfg.Server.Latency)
		}
	} else {
		d = m.about(m.cfg.Server.Latency)
	}
	for _, f := range m.faults {
		if f.hooks.delay != nil {
			d += f.hooks.delay(m, f, c, q)
		}
	}
	id := string(q.ID)
	token = m.after(c, d, func() {
		delete(c.asked, id)
		do()
	})
	if token != 0 && part != handshake && part != calling { // nobody may cancel the one, and calls know it themselves
		c.asked[id] = token
	}
	return token
}

// notify sends a notification. params may be empty; reply is the request in whose exchange it goes, if any.
func (m *machine) notify(c *conn, method, params, reply string) {
	body := `{"jsonrpc":"2.0","method":` + quote(method)
	if params != "" {
		body += `,"params":` + params
	}
	m.say(c, Note{notified(c.id, method)})
	m.say(c, Send{Conn: c.id, Reply: reply, More: reply != "", Body: json.RawMessage(body + "}")})
}
