package peer

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// legacyVersions are the versions of the legacy era, newest first.
var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// serveLegacy takes a message in the era of initialize.
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
		if m.cfg.Server.Offers && c.version != "" && isOfferMethod(q.Method) && q.ID != nil {
			m.scheduleAnswer(c, q, func() { m.answerOffer(c, q) })
			return
		}
		m.scheduleAnswer(c, q, func() { m.answerError(c, q, codeMethodNotFound, "Method not found: "+q.Method, "") })
	}
}

// serveShared takes what both eras have.
func (m *machine) serveShared(c *conn, q *message) {
	switch {
	case q.ID == nil: // a request without an id is a notification that nobody knows
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
	default:
		m.scheduleAnswer(c, q, func() { m.answerResult(c, q, "{}") })
	}
}

// answerInitialize is the handshake of the legacy era.
//
// 2025-11-25: "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise, the
// server MUST respond with another protocol version it supports. This SHOULD be the latest version supported by the
// server."
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

// taskCapability is the member tasks of what a server of the legacy era can do.
func (m *machine) taskCapability() string {
	if m.cfg.Server.Tasks == "" {
		return ""
	}
	return `,"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`
}

// serverInfo is what the server says of itself.
func (m *machine) serverInfo() string {
	return `{"name":` + quoteJSON("chaos "+m.cfg.Server.Name) + `,"version":"1.0.0"}`
}

func notifiedEvent(conn int, method string) history.Event {
	return history.Event{Side: history.World, Kind: history.Notified, Conn: conn, Method: method}
}
