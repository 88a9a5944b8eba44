package peer

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	modernVersion = "2026-07-28"
	metaPrefix    = "io.modelcontextprotocol/"
)

// listen is one subscription.
type listen struct {
	id json.RawMessage
	// tools, resources and prompts say that the client wants to know of changes of those lists, uris which resources it watches.
	tools, resources, prompts bool
	uris                      []string
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
	if wrong := m.invalid(q); wrong != nil {
		m.later(c, q, func() { m.reject(c, q, wrong) })
		return
	}
	c.version = modernVersion
	switch q.Method {
	case "server/discover":
		m.later(c, q, func() { m.result(c, q, m.discovery(modernVersion)) })
	case "subscriptions/listen":
		m.later(c, q, func() { m.listen(c, q) })
	case "tools/list", "tools/call", "tasks/get", "tasks/cancel":
		m.offered(c, q)
	default:
		if m.cfg.Server.Offers && offering(q.Method) {
			m.later(c, q, func() { m.offer(c, q) })
			return
		}
		m.later(c, q, func() { m.refuse(c, q, codeNoMethod, "Method not found: "+q.Method, "") })
	}
}

// flaw is what is wrong with a request.
type flaw struct {
	code       int
	text, data string
}

// invalid says what is wrong with a request before its method is looked at, nil if nothing is.
//
// 2026-07-28, Versioning: "A server that supports only modern versions SHOULD name the protocol versions it supports in any
// error it returns to an initialize request".
func (m *machine) invalid(q *message) *flaw {
	wrong := ""
	if m.cfg.Server.Kind == messages.HTTP && q.header != nil {
		wrong = mismatch(q)
	}
	switch {
	case wrong != "" && q.Method == "initialize":
		return &flaw{codeHeaderMismatch, "Header mismatch: " + wrong + "; this server speaks " + modernVersion, versions(modernVersion, "")}
	case wrong != "":
		return &flaw{codeHeaderMismatch, "Header mismatch: " + wrong, ""}
	case q.Method == "initialize":
		return badVersion(q, modernVersion)
	case q.meta.version == "" || !q.meta.capable:
		// "A request missing any required field is malformed; the server MUST reject it with JSON-RPC error code -32602".
		return &flaw{codeInvalidParams, "Invalid params: _meta lacks protocolVersion or clientCapabilities", ""}
	case q.meta.version != modernVersion:
		return badVersion(q, modernVersion)
	}
	return nil
}

// badVersion is for a request of another version, or of the era that names it elsewhere.
//
// 2026-07-28: "If the server does not implement the requested version …, it MUST respond with an
// UnsupportedProtocolVersionError listing the versions it does support".
func badVersion(q *message, supported string) *flaw {
	requested := q.meta.version
	if requested == "" {
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(q.Params, &p) // what names none asked for none
		requested = p.ProtocolVersion
	}
	return &flaw{codeBadVersion, "Unsupported protocol version: " + supported + " is spoken here", versions(supported, requested)}
}

// versions is the data of an error about versions.
func versions(supported, requested string) string {
	data := `{"supported":[` + quote(supported) + `]`
	if requested != "" {
		data += `,"requested":` + quote(requested)
	}
	return data + "}"
}

// mismatch says which header is missing or contradicts the message, empty if none does.
//
// 2026-07-28, Server Validation: "Servers that process the request body MUST reject requests where the values specified in
// the headers do not match the corresponding values in the request body." Mcp-Name is required for tools/call.
func mismatch(q *message) string {
	var p struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(q.Params, &p) // what names nothing has no name
	for _, h := range []struct {
		name, want string
		needed     bool
	}{
		{"Mcp-Protocol-Version", q.meta.version, true},
		{"Mcp-Method", q.Method, true},
		{"Mcp-Name", p.Name, q.Method == "tools/call"},
	} {
		value, there := q.header[h.name]
		switch {
		case !h.needed:
		case !there:
			return h.name + " is missing"
		case plain(value) != h.want:
			return h.name + " header value " + quote(value) + " does not match body value " + quote(h.want)
		}
	}
	return ""
}

// plain undoes the encoding of a header's value.
func plain(value string) string {
	inside, begins := strings.CutPrefix(value, "=?base64?")
	inside, ends := strings.CutSuffix(inside, "?=")
	if b, err := base64.StdEncoding.DecodeString(inside); begins && ends && err == nil {
		return string(b)
	}
	return value
}

// discovery is the result of server/discover.
func (m *machine) discovery(version string) string {
	return `{"supportedVersions":[` + quote(version) + `],"capabilities":{"tools":{"listChanged":true}` + m.offerCapability() + m.extensions() + `},` +
		`"ttlMs":0,"cacheScope":"private"}`
}

// extensions is the member of that name of what a server of the modern era can do.
func (m *machine) extensions() string {
	if m.cfg.Server.Tasks == "" {
		return ""
	}
	return `,"extensions":{"` + taskExtension + `":{}}`
}

// listen opens a subscription. Of all that can be asked for there are only changes of the tool list.
//
// 2026-07-28, Subscriptions: the first message of a subscription is the acknowledgment, "the notifications field in the
// acknowledgment reflects the subset the server agreed to honor".
func (m *machine) listen(c *conn, q *message) {
	var p struct {
		Notifications struct {
			Tools     bool     `json:"toolsListChanged"`
			Resources bool     `json:"resourcesListChanged"`
			Prompts   bool     `json:"promptsListChanged"`
			URIs      []string `json:"resourceSubscriptions"`
		} `json:"notifications"`
	}
	if json.Unmarshal(q.Params, &p) != nil {
		m.refuse(c, q, codeInvalidParams, "Invalid params", "")
		return
	}
	l := &listen{id: q.ID, tools: p.Notifications.Tools}
	if m.cfg.Server.Offers {
		l.resources, l.prompts, l.uris = p.Notifications.Resources, p.Notifications.Prompts, p.Notifications.URIs
	}
	for _, f := range slices.Clone(m.faults) {
		if f.hooks.listening != nil {
			f.hooks.listening(m, f, c, l)
		}
	}
	c.listens = append(c.listens, l)
	m.notify(c, "notifications/subscriptions/acknowledged",
		`{`+subscription(l.id)+`,"notifications":`+l.agreed()+`}`, string(l.id))
	for _, f := range slices.Clone(m.faults) {
		if f.hooks.listens != nil {
			f.hooks.listens(m, f, c, l)
		}
	}
}

// agreed is what is told on a subscription.
func (l *listen) agreed() string {
	var all []string
	for _, a := range []struct {
		is   bool
		text string
	}{{l.tools, `"toolsListChanged":true`}, {l.resources, `"resourcesListChanged":true`}, {l.prompts, `"promptsListChanged":true`}} {
		if a.is {
			all = append(all, a.text)
		}
	}
	if len(l.uris) > 0 {
		uris, _ := json.Marshal(l.uris) // texts always encode
		all = append(all, `"resourceSubscriptions":`+string(uris))
	}
	return "{" + strings.Join(all, ",") + "}"
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
