package peer

import (
	"encoding/json"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	modernVersion = "2026-07-28"
	metaPrefix    = "io.modelcontextprotocol/"
)

// listen is one subscription.
type listen struct {
	id json.RawMessage
	// tools says that the client wants to know of changes of the tool list.
	tools bool
}

// modern takes a message in the era without sessions.
func (m *machine) modern(c *conn, q *message) {
	if q.Method == "notifications/cancelled" {
		m.cancelled(c, q)
		return
	}
	if q.ID == nil {
		return
	}
	if wrong := mismatch(q); wrong != "" {
		m.refuse(c, q, codeHeaderMismatch, "Header mismatch: "+wrong, "")
		return
	}
	// 2026-07-28: a server that does not support the version of a request MUST answer with an UnsupportedProtocolVersionError
	// that lists the versions it does support. It answers initialize so too: a client of the older era can say then what is
	// the matter.
	if q.meta.version != modernVersion {
		m.later(c, q, func() { m.badVersion(c, q, modernVersion) })
		return
	}
	c.version = modernVersion
	switch q.Method {
	case "server/discover":
		m.later(c, q, func() { m.result(c, q, m.discovery(modernVersion)) })
	case "subscriptions/listen":
		m.later(c, q, func() { m.listen(c, q) })
	case "tools/list", "tools/call":
		m.offered(c, q)
	default:
		m.later(c, q, func() { m.refuse(c, q, codeNoMethod, "Method not found: "+q.Method, "") })
	}
}

// badVersion refuses a request for its version, or for having none.
func (m *machine) badVersion(c *conn, q *message, supported string) {
	requested := q.meta.version
	if requested == "" {
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(q.Params, &p) // what names none asked for none
		requested = p.ProtocolVersion
	}
	m.refuse(c, q, codeBadVersion, "Unsupported protocol version",
		`{"supported":[`+quote(supported)+`],"requested":`+quote(requested)+`}`)
}

// mismatch says which header contradicts the message. A client that sends no version in a header comes through something
// that has none.
//
// 2026-07-28, Streamable HTTP: servers MUST reject requests whose headers do not match the body.
func mismatch(q *message) string {
	version, there := q.header["Mcp-Protocol-Version"]
	switch method := q.header["Mcp-Method"]; {
	case !there:
		return ""
	case version != q.meta.version:
		return "MCP-Protocol-Version is " + quote(version) + ", the message says " + quote(q.meta.version)
	case q.meta.version != "" && method != q.Method:
		return "Mcp-Method is " + quote(method) + ", the message says " + quote(q.Method)
	}
	return ""
}

// discovery is the result of server/discover.
func (m *machine) discovery(version string) string {
	return `{"supportedVersions":[` + quote(version) + `],"capabilities":{"tools":{"listChanged":true}},` +
		`"ttlMs":0,"cacheScope":"private","_meta":{"` + metaPrefix + `serverInfo":` + m.info() + `}}`
}

// listen opens a subscription. Of all that can be asked for there are only changes of the tool list.
//
// 2026-07-28, Subscriptions: the first message of a subscription is the acknowledgment, "the notifications field in the
// acknowledgment reflects the subset the server agreed to honor".
func (m *machine) listen(c *conn, q *message) {
	var p struct {
		Notifications struct {
			Tools bool `json:"toolsListChanged"`
		} `json:"notifications"`
	}
	if json.Unmarshal(q.Params, &p) != nil {
		m.refuse(c, q, codeInvalidParams, "Invalid params", "")
		return
	}
	l := &listen{id: q.ID, tools: p.Notifications.Tools}
	for _, f := range slices.Clone(m.faults) {
		if f.hooks.listening != nil {
			f.hooks.listening(m, f, c, l)
		}
	}
	c.listens = append(c.listens, l)
	agreed := "{}"
	if l.tools {
		agreed = `{"toolsListChanged":true}`
	}
	m.notify(c, "notifications/subscriptions/acknowledged",
		`{`+subscription(l.id)+`,"notifications":`+agreed+`}`, string(l.id))
	for _, f := range slices.Clone(m.faults) {
		if f.hooks.listens != nil {
			f.hooks.listens(m, f, c, l)
		}
	}
}

// unlisten forgets a subscription and reports whether it was there.
func (c *conn) unlisten(l *listen) bool {
	before := len(c.listens)
	c.listens = slices.DeleteFunc(c.listens, func(o *listen) bool { return o == l })
	return len(c.listens) < before
}

// subscription is the member _meta of what is told on a subscription.
func subscription(id json.RawMessage) string {
	return `"_meta":{"` + metaPrefix + `subscriptionId":` + string(id) + `}`
}

const listChangedMethod = "notifications/tools/list_changed"

// tellChanged tells whoever wants to know that the tool list has changed.
func (m *machine) tellChanged() {
	for _, c := range m.connections() {
		m.tellChangedOn(c)
	}
}

// wantsChanges reports whether the client of a connection is told when the tool list changes.
func (c *conn) wantsChanges() bool {
	if c.lost { // nobody knows whom to tell
		return false
	}
	return c.initialized || slices.ContainsFunc(c.listens, func(l *listen) bool { return l.tools })
}

func (m *machine) tellChangedOn(c *conn) {
	switch {
	case !c.wantsChanges():
	case c.era == messages.EraModern:
		for _, l := range c.listens {
			if l.tools {
				m.acts(c, func() { m.notify(c, listChangedMethod, "{"+subscription(l.id)+"}", string(l.id)) })
			}
		}
	default:
		m.acts(c, func() { m.notify(c, listChangedMethod, "", "") })
	}
}
