package peer

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

const (
	modernVersion = "2026-07-28"
	metaPrefix    = "io.modelcontextprotocol/"
)

// subscriptionStream is one open subscriptions/listen request.
type subscriptionStream struct {
	id json.RawMessage
	// id is the id of the request. tools, resources and prompts are set if the client wants notifications about changes of
	// those lists; uris are the resources that it watches.
	tools, resources, prompts bool
	uris                      []string
}

// serveModern handles a message in the era without sessions (2026-07-28). Each request carries version and capabilities itself.
func (m *machine) serveModern(c *conn, q *message) {
	if q.Method == "notifications/cancelled" {
		m.handleCancelled(c, q)
		return
	}
	if q.ID == nil {
		return
	}
	if problem := m.validateRequest(c, q); problem != nil {
		m.scheduleAnswer(c, q, func() { m.rejectRequest(c, q, problem) })
		return
	}
	c.version = modernVersion
	m.noteRound(q)
	switch q.Method {
	case "server/discover":
		m.scheduleAnswer(c, q, func() { m.answerResult(c, q, m.discoverResult(modernVersion)) })
	case "subscriptions/listen":
		m.scheduleAnswer(c, q, func() { m.openStream(c, q) })
	case "tools/list", "tools/call", "tasks/get", "tasks/cancel", "tasks/update":
		m.serveShared(c, q)
	default:
		if m.cfg.Server.HasMethod(q.Method) {
			m.scheduleAnswer(c, q, func() { m.answerOffer(c, q) })
			return
		}
		m.scheduleAnswer(c, q, func() { m.answerError(c, q, codeMethodNotFound, "Method not found: "+q.Method, "") })
	}
}

// requestProblem describes a malformed request as a JSON-RPC error.
type requestProblem struct {
	code       int
	text, data string
}

// validateRequest checks a request before its method is looked at, and returns nil if it is well-formed. An initialize that says
// nothing of this era is refused with the version that is spoken here, so that a client of the legacy era learns it.
func (m *machine) validateRequest(c *conn, q *message) *requestProblem {
	problem := ""
	legacy := q.Method == "initialize" && q.meta.version != modernVersion
	if m.cfg.Server.Kind == messages.HTTP && q.header != nil {
		problem = headerMismatch(q)
	}
	switch {
	case !legacy && (q.meta.version == "" || !q.meta.hasCapabilities):
		// "A request missing any required field is malformed; the server MUST reject it with JSON-RPC error code -32602".
		return &requestProblem{codeInvalidParams, "Invalid params: _meta lacks protocolVersion or clientCapabilities", ""}
	case problem != "" && legacy:
		return &requestProblem{codeHeaderMismatch, "Header mismatch: " + problem + "; this server speaks " + modernVersion, versionErrorData(modernVersion, "")}
	case problem != "":
		return &requestProblem{codeHeaderMismatch, "Header mismatch: " + problem, ""}
	case q.meta.version != modernVersion:
		return versionProblem(q, modernVersion)
	}
	if problem := m.paramMismatch(q); problem != "" && q.header != nil {
		m.checkParamMismatch(c, problem)
		return &requestProblem{codeHeaderMismatch, "Header mismatch: " + problem, ""}
	}
	return nil
}

// versionProblem refuses a request of another version. An initialize of the legacy era names its version in the params instead
// of _meta.
func versionProblem(q *message, supported string) *requestProblem {
	requested := q.meta.version
	if requested == "" {
		var p struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		// Params without a version ask for none, and the error then names none.
		_ = json.Unmarshal(q.Params, &p)
		requested = p.ProtocolVersion
	}
	return &requestProblem{codeUnsupportedVersion, "Unsupported protocol version: " + supported + " is spoken here", versionErrorData(supported, requested)}
}

// versionErrorData encodes the data of an error about versions.
func versionErrorData(supported, requested string) string {
	data := `{"supported":[` + quoteJSON(supported) + `]`
	if requested != "" {
		data += `,"requested":` + quoteJSON(requested)
	}
	return data + "}"
}

// headerMismatch describes the header that is missing or contradicts the body, empty if none does.
func headerMismatch(q *message) string {
	var p struct {
		Name string `json:"name"`
	}
	// Params without a name belong to a method that needs no Mcp-Name.
	_ = json.Unmarshal(q.Params, &p)
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

// decodeHeader undoes the base64 form in which a client sends a header value that is no plain ASCII.
func decodeHeader(value string) string {
	inside, hasPrefix := strings.CutPrefix(value, "=?base64?")
	inside, hasSuffix := strings.CutSuffix(inside, "?=")
	if b, err := base64.StdEncoding.DecodeString(inside); hasPrefix && hasSuffix && err == nil {
		return string(b)
	}
	return value
}

// discoverResult encodes the result of server/discover. ttlMs 0 forbids the client to keep it, so that faults show at once.
func (m *machine) discoverResult(version string) string {
	return `{"supportedVersions":[` + quoteJSON(version) + `],"capabilities":{"tools":{"listChanged":true}` + m.offerCapability() + m.extensionsMember() + `},` +
		`"ttlMs":0,"cacheScope":"private"}`
}

// extensionsMember returns the member extensions of the capabilities of a modern server, empty if it runs no tasks.
func (m *machine) extensionsMember() string {
	if m.cfg.Server.Tasks == "" {
		return ""
	}
	return `,"extensions":{"` + taskExtension + `":{}}`
}

// openStream opens a subscription and acknowledges it. It agrees to changes of the tool list, and to what it has beside tools.
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
	l.resources = p.Notifications.Resources && m.cfg.Server.Has(scenario.HasResourceChanges)
	l.prompts = p.Notifications.Prompts && m.cfg.Server.Has(scenario.HasPromptChanges)
	if m.cfg.Server.Has(scenario.HasSubscribe) {
		l.uris = p.Notifications.URIs
		if brief := "chaos://" + m.cfg.Server.Name + "/briefly"; !c.hasBrief() {
			l.uris = slices.DeleteFunc(l.uris, func(uri string) bool { return uri == brief })
		}
	}
	for _, f := range slices.Clone(m.activeFaults) {
		if f.hooks.beforeListen != nil {
			f.hooks.beforeListen(m, f, c, l)
		}
	}
	c.streams = append(c.streams, l)
	acknowledged := notifiedEvent(c.id, "notifications/subscriptions/acknowledged")
	acknowledged.About = string(l.id)
	m.sendRecorded(c, acknowledged, `{`+subscriptionMeta(l.id)+`,"notifications":`+l.agreedFilter()+`}`, string(l.id))
	for _, f := range slices.Clone(m.activeFaults) {
		if f.hooks.afterListen != nil {
			f.hooks.afterListen(m, f, c, l)
		}
	}
}

// agreedFilter encodes which notifications the server sends on a subscription.
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
		// Marshal of strings cannot fail.
		uris, _ := json.Marshal(l.uris)
		all = append(all, `"resourceSubscriptions":`+string(uris))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// removeStream forgets a subscription and reports whether it was open.
func (c *conn) removeStream(l *subscriptionStream) bool {
	before := len(c.streams)
	c.streams = slices.DeleteFunc(c.streams, func(o *subscriptionStream) bool { return o == l })
	return len(c.streams) < before
}

// subscriptionMeta returns the member _meta of a notification that goes on a subscription.
func subscriptionMeta(id json.RawMessage) string {
	return `"_meta":{"` + metaPrefix + `subscriptionId":` + string(id) + `}`
}

const listChangedMethod = "notifications/tools/list_changed"

// notifyListChanged notifies every client that listens that the tool list has changed.
func (m *machine) notifyListChanged() {
	for _, c := range m.sortedConns() {
		m.notifyConnChanged(c)
	}
}

// wantsChanges reports whether the server notifies the client of a connection when the tool list changes. A server that has
// lost its session no longer knows where to send.
func (c *conn) wantsChanges() bool {
	if c.sessionLost { // the session that would carry the notice is gone
		return false
	}
	return c.initialized || slices.ContainsFunc(c.streams, func(l *subscriptionStream) bool { return l.tools })
}

// notifyConnChanged sends list_changed to one client: in the modern era on each of its subscriptions, in the legacy era once.
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
