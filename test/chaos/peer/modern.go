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

// subscriptionStream is one subscription.
type subscriptionStream struct {
	id json.RawMessage
	// tools, resources and prompts say that the client wants to know of changes of those lists, uris which resources it watches.
	tools, resources, prompts bool
	uris                      []string
}

// serveModern takes a message in the era without sessions.
func (m *machine) serveModern(c *conn, q *message) {
	if q.Method == "notifications/cancelled" {
		m.handleCancelled(c, q)
		return
	}
	if q.ID == nil {
		return
	}
	if problem := m.validateRequest(q); problem != nil {
		m.scheduleAnswer(c, q, func() { m.rejectRequest(c, q, problem) })
		return
	}
	c.version = modernVersion
	switch q.Method {
	case "server/discover":
		m.scheduleAnswer(c, q, func() { m.answerResult(c, q, m.discoverResult(modernVersion)) })
	case "subscriptions/listen":
		m.scheduleAnswer(c, q, func() { m.openStream(c, q) })
	case "tools/list", "tools/call", "tasks/get", "tasks/cancel":
		m.serveShared(c, q)
	default:
		if m.cfg.Server.Offers && isOfferMethod(q.Method) {
			m.scheduleAnswer(c, q, func() { m.answerOffer(c, q) })
			return
		}
		m.scheduleAnswer(c, q, func() { m.answerError(c, q, codeMethodNotFound, "Method not found: "+q.Method, "") })
	}
}

// requestProblem is what is wrong with a request.
type requestProblem struct {
	code       int
	text, data string
}

// validateRequest says what is wrong with a request before its method is looked at, nil if nothing is.
//
// 2026-07-28, Versioning: "A server that supports only modern versions SHOULD name the protocol versions it supports in any
// error it returns to an initialize request".
func (m *machine) validateRequest(q *message) *requestProblem {
	problem := ""
	if m.cfg.Server.Kind == messages.HTTP && q.header != nil {
		problem = headerMismatch(q)
	}
	switch {
	case problem != "" && q.Method == "initialize":
		return &requestProblem{codeHeaderMismatch, "Header mismatch: " + problem + "; this server speaks " + modernVersion, versionErrorData(modernVersion, "")}
	case problem != "":
		return &requestProblem{codeHeaderMismatch, "Header mismatch: " + problem, ""}
	case q.Method == "initialize":
		return versionProblem(q, modernVersion)
	case q.meta.version == "" || !q.meta.hasCapabilities:
		// "A request missing any required field is malformed; the server MUST reject it with JSON-RPC error code -32602".
		return &requestProblem{codeInvalidParams, "Invalid params: _meta lacks protocolVersion or clientCapabilities", ""}
	case q.meta.version != modernVersion:
		return versionProblem(q, modernVersion)
	}
	return nil
}

// versionProblem is for a request of another version, or of the era that names it elsewhere.
//
// 2026-07-28: "If the server does not implement the requested version …, it MUST respond with an
// UnsupportedProtocolVersionError listing the versions it does support".
func versionProblem(q *message, supported string) *requestProblem {
	requested := q.meta.version
	if requested == "" {
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(q.Params, &p) // what names none asked for none
		requested = p.ProtocolVersion
	}
	return &requestProblem{codeUnsupportedVersion, "Unsupported protocol version: " + supported + " is spoken here", versionErrorData(supported, requested)}
}

// versionErrorData is the data of an error about versions.
func versionErrorData(supported, requested string) string {
	data := `{"supported":[` + quoteJSON(supported) + `]`
	if requested != "" {
		data += `,"requested":` + quoteJSON(requested)
	}
	return data + "}"
}

// headerMismatch says which header is missing or contradicts the message, empty if none does.
//
// 2026-07-28, Server Validation: "Servers that process the request body MUST reject requests where the values specified in
// the headers do not match the corresponding values in the request body." Mcp-Name is required for tools/call.
func headerMismatch(q *message) string {
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
		value, present := q.header[h.name]
		switch {
		case !h.needed:
		case !present:
			return h.name + " is missing"
		case decodeHeader(value) != h.want:
			return h.name + " header value " + quoteJSON(value) + " does not match body value " + quoteJSON(h.want)
		}
	}
	return ""
}

// decodeHeader undoes the encoding of a header's value.
func decodeHeader(value string) string {
	inside, hasPrefix := strings.CutPrefix(value, "=?base64?")
	inside, hasSuffix := strings.CutSuffix(inside, "?=")
	if b, err := base64.StdEncoding.DecodeString(inside); hasPrefix && hasSuffix && err == nil {
		return string(b)
	}
	return value
}

// discoverResult is the result of server/discover.
func (m *machine) discoverResult(version string) string {
	return `{"supportedVersions":[` + quoteJSON(version) + `],"capabilities":{"tools":{"listChanged":true}` + m.offerCapability() + m.extensionsMember() + `},` +
		`"ttlMs":0,"cacheScope":"private"}`
}

// extensionsMember is the member of that name of what a server of the modern era can do.
func (m *machine) extensionsMember() string {
	if m.cfg.Server.Tasks == "" {
		return ""
	}
	return `,"extensions":{"` + taskExtension + `":{}}`
}

// openStream opens a subscription. Of all that can be asked for there are only changes of the tool list.
//
// 2026-07-28, Subscriptions: the first message of a subscription is the acknowledgment, "the notifications field in the
// acknowledgment reflects the subset the server agreed to honor".
func (m *machine) openStream(c *conn, q *message) {
	var p struct {
		Notifications struct {
			Tools     bool     `json:"toolsListChanged"`
			Resources bool     `json:"resourcesListChanged"`
			Prompts   bool     `json:"promptsListChanged"`
			URIs      []string `json:"resourceSubscriptions"`
		} `json:"notifications"`
	}
	if json.Unmarshal(q.Params, &p) != nil {
		m.answerError(c, q, codeInvalidParams, "Invalid params", "")
		return
	}
	l := &subscriptionStream{id: q.ID, tools: p.Notifications.Tools}
	if m.cfg.Server.Offers {
		l.resources, l.prompts, l.uris = p.Notifications.Resources, p.Notifications.Prompts, p.Notifications.URIs
	}
	for _, f := range slices.Clone(m.activeFaults) {
		if f.hooks.beforeListen != nil {
			f.hooks.beforeListen(m, f, c, l)
		}
	}
	c.streams = append(c.streams, l)
	m.sendNotification(c, "notifications/subscriptions/acknowledged",
		`{`+subscriptionMeta(l.id)+`,"notifications":`+l.agreedFilter()+`}`, string(l.id))
	for _, f := range slices.Clone(m.activeFaults) {
		if f.hooks.afterListen != nil {
			f.hooks.afterListen(m, f, c, l)
		}
	}
}

// agreedFilter is what is told on a subscription.
func (l *subscriptionStream) agreedFilter() string {
	var all []string
	for _, a := range []struct {
		included bool
		text     string
	}{{l.tools, `"toolsListChanged":true`}, {l.resources, `"resourcesListChanged":true`}, {l.prompts, `"promptsListChanged":true`}} {
		if a.included {
			all = append(all, a.text)
		}
	}
	if len(l.uris) > 0 {
		uris, _ := json.Marshal(l.uris) // texts always encode
		all = append(all, `"resourceSubscriptions":`+string(uris))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// removeStream forgets a subscription and reports whether it was there.
func (c *conn) removeStream(l *subscriptionStream) bool {
	before := len(c.streams)
	c.streams = slices.DeleteFunc(c.streams, func(o *subscriptionStream) bool { return o == l })
	return len(c.streams) < before
}

// subscriptionMeta is the member _meta of what is told on a subscription.
func subscriptionMeta(id json.RawMessage) string {
	return `"_meta":{"` + metaPrefix + `subscriptionId":` + string(id) + `}`
}

const listChangedMethod = "notifications/tools/list_changed"

// notifyListChanged tells whoever wants to know that the tool list has changed.
func (m *machine) notifyListChanged() {
	for _, c := range m.sortedConns() {
		m.notifyConnChanged(c)
	}
}

// wantsChanges reports whether the client of a connection is told when the tool list changes.
func (c *conn) wantsChanges() bool {
	if c.sessionLost { // nobody knows whom to tell
		return false
	}
	return c.initialized || slices.ContainsFunc(c.streams, func(l *subscriptionStream) bool { return l.tools })
}

func (m *machine) notifyConnChanged(c *conn) {
	switch {
	case !c.wantsChanges():
	case c.era == messages.EraModern:
		for _, l := range c.streams {
			if l.tools {
				m.runOrHold(c, func() { m.sendNotification(c, listChangedMethod, "{"+subscriptionMeta(l.id)+"}", string(l.id)) })
			}
		}
	default:
		m.runOrHold(c, func() { m.sendNotification(c, listChangedMethod, "", "") })
	}
}
