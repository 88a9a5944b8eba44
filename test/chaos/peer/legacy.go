package peer

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// legacyVersions are the protocol versions of the legacy era, newest first.
var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// serveLegacy handles a message in the era of initialize (versions up to 2025-11-25).
func (m *machine) serveLegacy(c *conn, q *message) {
	switch q.Method {
	case "initialize":
		if q.ID != nil {
			m.scheduleAnswer(c, q, func() { m.answerInitialize(c, q) })
		}
	case "notifications/initialized":
		c.initialized = c.version != ""
	case "notifications/cancelled":
		m.handleCancelled(c, q)
	case "ping":
		m.scheduleAnswer(c, q, func() { m.answerResult(c, q, "{}") })
	case "tools/list", "tools/call", "logging/setLevel", "tasks/get", "tasks/result", "tasks/cancel", "tasks/list":
		if c.version == "" {
			// 2025-11-25: "The client SHOULD NOT send requests other than pings before the server has responded to the
			// initialize request."
			m.answerError(c, q, codeInvalidRequest, "Received a request before initialize", "")
			return
		}
		m.serveShared(c, q)
	default:
		if m.cfg.Server.HasMethod(q.Method) && c.version != "" && q.ID != nil {
			m.scheduleAnswer(c, q, func() { m.answerOffer(c, q) })
			return
		}
		m.scheduleAnswer(c, q, func() { m.answerError(c, q, codeMethodNotFound, "Method not found: "+q.Method, "") })
	}
}

// serveShared handles the requests that both eras have.
func (m *machine) serveShared(c *conn, q *message) {
	switch {
	// A request method without an id is a notification of an unknown kind, which JSON-RPC leaves unanswered.
	case q.ID == nil:
	case q.Method == "tools/list":
		m.scheduleAnswer(c, q, func() { m.answerToolPage(c, q) })
	case q.Method == "tools/call":
		m.startCall(c, q)
	case strings.HasPrefix(q.Method, "tasks/"):
		if m.cfg.Server.Tasks == "" {
			m.scheduleAnswer(c, q, func() { m.answerError(c, q, codeMethodNotFound, "Method not found: "+q.Method, "") })
			return
		}
		m.scheduleAnswer(c, q, func() { m.handleTaskRequest(c, q) })
	case q.Method == "logging/setLevel":
		m.scheduleAnswer(c, q, func() {
			c.setLogLevel(q)
			m.answerResult(c, q, "{}")
		})
	default:
		m.scheduleAnswer(c, q, func() { m.answerResult(c, q, "{}") })
	}
}

// answerInitialize answers the handshake of the legacy era and notes the client's capabilities for the server's questions.
func (m *machine) answerInitialize(c *conn, q *message) {
	var p struct {
		ProtocolVersion string                     `json:"protocolVersion"`
		Capabilities    map[string]json.RawMessage `json:"capabilities"`
	}
	switch err := json.Unmarshal(q.Params, &p); {
	case err != nil || p.ProtocolVersion == "":
		m.answerError(c, q, codeInvalidParams, "Invalid params: initialize needs protocolVersion", "")
		return
	case c.version != "":
		m.answerError(c, q, codeInvalidRequest, "Invalid Request: the session is initialized", "")
		return
	}
	c.capabilities = slices.Sorted(maps.Keys(p.Capabilities))
	// URL elicitation is a second kind within one capability; the invented name lets requireElicitation ask for it like for the
	// others.
	if strings.Contains(string(p.Capabilities["elicitation"]), `"url"`) {
		c.capabilities = append(c.capabilities, "elicitation url")
	}
	c.version = legacyVersions[0]
	if slices.Contains(legacyVersions, p.ProtocolVersion) {
		c.version = p.ProtocolVersion
	}
	m.answerResult(c, q, `{"protocolVersion":`+quoteJSON(c.version)+`,"capabilities":{"logging":{},"tools":{"listChanged":true}`+m.taskCapability()+m.offerCapability()+`},`+
		`"serverInfo":`+m.serverInfo()+`}`)
}

// taskCapability returns the member tasks of the capabilities of a legacy server, empty if it runs no tasks.
func (m *machine) taskCapability() string {
	if m.cfg.Server.Tasks == "" {
		return ""
	}
	return `,"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`
}

// serverInfo returns the name and version that the server gives of itself, as JSON.
func (m *machine) serverInfo() string {
	return `{"name":` + quoteJSON("chaos "+m.cfg.Server.Name) + `,"version":"1.0.0"}`
}

// notifiedEvent is the history's event of a notification that the server sends.
func notifiedEvent(conn int, method string) history.Event {
	return history.Event{Side: history.World, Kind: history.Notified, Conn: conn, Method: method}
}
