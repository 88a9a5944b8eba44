package peer

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The codes of JSON-RPC and of 2026-07-28.
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternal           = -32603
	codeHeaderMismatch     = -32020
	codeUnsupportedVersion = -32022
)

// message is what a client sent. ID is empty for a notification.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`

	header map[string]string
	meta   meta
	// task is that of a call whose request was answered with it.
	task *task
}

// meta is what is read of _meta.
type meta struct {
	version, logLevel string
	hasCapabilities   bool            // it says what the client can do
	supportsTasks     bool            // and that it can follow a task
	progressToken     json.RawMessage // the progress token, nil if none is asked for
}

// Receive implements Machine.
func (m *machine) Receive(now time.Duration, id int, body []byte, header map[string]string) []Action {
	m.beginTurn(now)
	m.announceTools()
	if f := m.deadConns[id]; f != nil {
		f.recordFired(m, id)
		return m.out
	}
	c := m.conns[id]
	if c == nil && m.cfg.Server.Kind == messages.HTTP {
		c = m.connForUnknown(id, body)
	}
	if c != nil {
		body = bytes.Clone(body)
		m.receiveOrHold(c, func() { m.receiveBody(c, body, header) })
	}
	return m.out
}

// connForUnknown makes a connection for a message over HTTP that belongs to none: it is of a session before the server was started
// again, or of a client of the modern era, which has none. nil if the message does not get so far.
func (m *machine) connForUnknown(id int, body []byte) *conn {
	for _, f := range m.activeFaults {
		if f.hooks.onUnknownConn != nil && f.hooks.onUnknownConn(m, f, id, body) {
			return nil
		}
	}
	if m.now < m.downUntil {
		m.downFault.recordFired(m, id)
		m.addActions(Status{Conn: id, Reply: idOf(body)})
		return nil
	}
	c := &conn{id: id, era: m.currentEra(), listRev: m.list.rev, requestTokens: make(map[string]int)}
	c.sessionLost = c.era == messages.EraLegacy
	m.conns[id] = c
	return c
}

// idOf is the id of a request as JSON, empty for a notification.
func idOf(body []byte) string {
	var q message
	_ = json.Unmarshal(body, &q) // what cannot be read has no id
	return string(q.ID)
}

// receiveBody takes one body apart.
func (m *machine) receiveBody(c *conn, body []byte, header map[string]string) {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' && c.version == "2025-03-26" {
		// 2025-03-26: "MCP implementations … MUST support receiving JSON-RPC batches."
		var batch []json.RawMessage
		if json.Unmarshal(body, &batch) == nil {
			for _, item := range batch {
				if !m.isEnded(c) {
					m.handleMessage(c, item, header)
				}
			}
			return
		}
	}
	m.handleMessage(c, body, header)
}

// handleMessage takes one message.
func (m *machine) handleMessage(c *conn, body []byte, header map[string]string) {
	q := &message{header: header}
	if !json.Valid(body) {
		m.answerError(c, q, codeParse, "Parse error", "")
		return
	}
	if err := json.Unmarshal(body, q); err != nil || q.ID != nil && !isID(q.ID) {
		q.ID = nil
		m.answerError(c, q, codeInvalidRequest, "Invalid Request", "")
		return
	}
	if q.Method == "" {
		m.handleAnswer(c, body)
		return
	}
	q.meta = metaOf(q.Params)
	for _, f := range m.activeFaults {
		if f.hooks.onMessage != nil && f.hooks.onMessage(m, f, c, q) {
			return
		}
	}
	if f := m.revokingFault(q); f != nil {
		m.refuseMessage(f, c, q, Status{Code: 401, Header: challengeHeader("invalid_token", "")})
		return
	}
	if !m.knowsSession(c, q) {
		m.refuseSession(c, q)
		return
	}
	if c.sessionLost { // and wants a new session: the answer is that of an opening
		c = m.acceptConn(c.id)
	}
	if !m.isEnded(c) {
		m.serveMessage(c, q)
	}
}

// knowsSession reports whether the server knows the session that a message is of.
//
// 2025-11-25: "The server MAY terminate the session at any time, after which it MUST respond to requests containing that
// session ID with HTTP 404 Not Found."
func (m *machine) knowsSession(c *conn, q *message) bool {
	session := q.header["Mcp-Session-Id"]
	if c.sessionLost {
		return q.Method == "initialize" && session == ""
	}
	return c.session == "" || session == "" || session == c.session
}

// refuseSession refuses a message of a session that the server does not know any more.
func (m *machine) refuseSession(c *conn, q *message) {
	for _, f := range m.activeFaults {
		if f.hooks.onLostSession != nil && f.hooks.onLostSession(m, f, c, q) {
			return
		}
	}
	if c.lostFault != nil {
		c.lostFault.recordFired(m, c.id)
	}
	m.sendOrHold(c, Status{
		Conn: c.id, Reply: string(q.ID), Code: 404, Header: jsonHeader(), Body: errorBody(nil, -32001, "Session not found", ""),
	})
}

// jsonHeader is the header of a body that is JSON.
func jsonHeader() map[string]string { return map[string]string{"Content-Type": "application/json"} }

// serveMessage lets the server itself answer a message, in its era.
func (m *machine) serveMessage(c *conn, q *message) {
	if token := q.header["Authorization"]; token != "" {
		m.seenTokens[token] = true
	}
	if c.era == messages.EraModern {
		m.serveModern(c, q)
		return
	}
	m.serveLegacy(c, q)
}

// metaOf reads _meta of the params. What has the wrong form is not there.
func metaOf(params json.RawMessage) (found meta) {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return found
	}
	_ = json.Unmarshal(p.Meta[metaPrefix+"protocolVersion"], &found.version)
	_ = json.Unmarshal(p.Meta[metaPrefix+"logLevel"], &found.logLevel)
	found.hasCapabilities = len(p.Meta[metaPrefix+"clientCapabilities"]) > 0
	var capabilities struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	_ = json.Unmarshal(p.Meta[metaPrefix+"clientCapabilities"], &capabilities)
	found.supportsTasks = capabilities.Extensions[taskExtension] != nil
	if t := p.Meta["progressToken"]; isID(t) {
		found.progressToken = t
	}
	return found
}

// isID reports whether a value is a text or a number, as ids and progress tokens are.
func isID(value json.RawMessage) bool {
	return len(value) > 0 && (value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// errorBody is a JSON-RPC error. data may be empty.
func errorBody(id json.RawMessage, code int, text, data string) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	b := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	b = append(b, `,"error":{"code":`...)
	b = strconv.AppendInt(b, int64(code), 10)
	b = append(b, `,"message":`...)
	b = append(b, quoteJSON(text)...)
	if data != "" {
		b = append(b, `,"data":`...)
		b = append(b, data...)
	}
	return append(b, "}}"...)
}
