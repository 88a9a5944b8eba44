package peer

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The error codes of JSON-RPC 2.0, and the last two of the specification of 2026-07-28.
const (
	codeParse              = -32700
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternal           = -32603
	codeHeaderMismatch     = -32020
	codeUnsupportedVersion = -32022
)

// message is one JSON-RPC message of a client. ID is nil for a notification, Method empty for a response.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`

	// header holds the HTTP headers that came with the message, nil on other transports; meta is the _meta of its params.
	header map[string]string
	meta   meta
	// task is set on the copy of a request whose call runs as a task: its answer goes to the task instead of the client.
	task *task
}

// meta holds what the server reads from a request's _meta.
type meta struct {
	version, logLevel string
	// hasCapabilities and supportsTasks are set if _meta names the client's capabilities, and the tasks extension among them.
	hasCapabilities bool
	supportsTasks   bool
	// progressToken is nil if the client asks for no progress.
	progressToken json.RawMessage
}

// Receive implements [Machine].
func (m *machine) Receive(now time.Duration, id int, body []byte, header map[string]string) []Action {
	m.beginTurn(now)
	m.announceTools()
	// The server behind this connection is gone, and the client cannot see that yet: the message is lost.
	if f := m.deadConns[id]; f != nil {
		f.recordFired(m, id)
		return m.out
	}
	c := m.conns[id]
	if c == nil && m.cfg.Server.Kind == messages.HTTP {
		c = m.connForUnknown(id, body)
	}
	if c != nil {
		// The caller may reuse body after Receive, while a held message is read only later.
		body = bytes.Clone(body)
		m.receiveOrHold(c, func() { m.receiveBody(c, body, header) })
	}
	return m.out
}

// connForUnknown makes a connection for a message over HTTP that belongs to none. Such a message comes from a session before
// the server was started again, or from a client of the modern era, which has no sessions. It returns nil if a fault takes the
// message or the server is down.
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
	// In the legacy era the sender refers to a session that this server never had, and serveMessage must not see it before
	// initialize.
	c := &conn{id: id, era: m.currentEra(), listRev: m.list.rev, requestTokens: make(map[string]int)}
	c.sessionLost = c.era == messages.EraLegacy
	m.conns[id] = c
	return c
}

// idOf returns the id of a request as JSON, empty for a notification.
func idOf(body []byte) string {
	var q message
	// An unreadable body has no id, and its refusal then carries none.
	_ = json.Unmarshal(body, &q)
	return string(q.ID)
}

// receiveBody splits a batch into its messages. Only the version 2025-03-26 has batches; with any other version an array is an
// invalid request.
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

// handleMessage handles one message: it refuses what is malformed, lets the faults intervene, checks credentials and session,
// and hands the rest to the server of the era.
func (m *machine) handleMessage(c *conn, body []byte, header map[string]string) {
	q := &message{header: header}
	err := json.Unmarshal(body, q)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		m.answerError(c, q, codeParse, "Parse error", "")
		return
	}
	// An error of Unmarshal and an id of the wrong type both lose the id, so that the answer carries null, as JSON-RPC wants
	// it.
	if err != nil || q.ID != nil && !isID(q.ID) {
		q.ID = nil
		m.answerError(c, q, codeInvalidRequest, "Invalid Request", "")
		return
	}
	// A message without a method is the client's answer to a question of the server.
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
	// 2025-11-25: "Servers that require a session ID SHOULD respond to requests without an MCP-Session-Id header (other than
	// initialization) with HTTP 400 Bad Request."
	if q.Method != "initialize" && c.version != "" && c.session != "" && header != nil && header["Mcp-Session-Id"] == "" {
		m.sendOrHold(c, Status{
			Conn: c.id, Reply: string(q.ID), Code: 400, Header: jsonHeader(),
			Body: errorBody(nil, codeInvalidRequest, "Bad Request: no session", ""),
		})
		return
	}
	// knowsSession let only initialize pass here: the client begins a new session on the old connection.
	if c.sessionLost {
		c = m.acceptConn(c.id)
	}
	if !m.isEnded(c) {
		m.serveMessage(c, q)
	}
}

// knowsSession reports whether the server still has the session of a message. A server that lost its session accepts only a new
// initialize.
func (m *machine) knowsSession(c *conn, q *message) bool {
	session := q.header["Mcp-Session-Id"]
	if c.sessionLost {
		return q.Method == "initialize" && session == ""
	}
	return c.session == "" || session == "" || session == c.session
}

// refuseSession answers a message of a session that the server has forgotten with 404, unless a fault answers otherwise. It
// records the effect of the fault that made the server forget, because the loss itself is invisible.
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

// jsonHeader returns the header of a JSON body.
func jsonHeader() map[string]string { return map[string]string{"Content-Type": "application/json"} }

// serveMessage hands a message to the server of the connection's era, and remembers the credential for the fault rotate-token.
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

// metaOf reads _meta of the params. It treats a member of the wrong form as absent.
func metaOf(params json.RawMessage) (found meta) {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	// Most messages have none, and every message passes here.
	if !bytes.Contains(params, []byte("_meta")) || json.Unmarshal(params, &p) != nil {
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

// isID reports whether a value is a string or a number, as JSON-RPC ids and progress tokens are.
func isID(value json.RawMessage) bool {
	return len(value) > 0 && (value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9')
}

// errorBody encodes a JSON-RPC error. data is JSON or empty; a nil id becomes null.
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
