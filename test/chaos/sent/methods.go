package sent

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// metaPrefix precedes the specification's own members of _meta.
const metaPrefix = "io.modelcontextprotocol/"

// A methodRule holds the requirements of the specification on one method that a client may use.
type methodRule struct {
	era          messages.Era // EraAuto: in both eras
	notification bool
	// texts, objects and values name the members that its params must have: a non-empty string, an object, any value.
	texts, objects, values []string
}

// methodRules holds every method that a client may send; any other one is a breach.
var methodRules = map[string]methodRule{
	"initialize":                       {era: messages.EraLegacy, texts: []string{"protocolVersion"}, objects: []string{"capabilities", "clientInfo"}},
	"ping":                             {era: messages.EraLegacy},
	"logging/setLevel":                 {era: messages.EraLegacy, texts: []string{"level"}},
	"resources/subscribe":              {era: messages.EraLegacy, texts: []string{"uri"}},
	"resources/unsubscribe":            {era: messages.EraLegacy, texts: []string{"uri"}},
	"tasks/list":                       {era: messages.EraLegacy},
	"tasks/result":                     {era: messages.EraLegacy, texts: []string{"taskId"}},
	"notifications/initialized":        {era: messages.EraLegacy, notification: true},
	"notifications/roots/list_changed": {era: messages.EraLegacy, notification: true},
	"notifications/progress":           {era: messages.EraLegacy, notification: true, values: []string{"progressToken", "progress"}},
	"notifications/tasks/status":       {era: messages.EraLegacy, notification: true, texts: []string{"taskId"}},
	"notifications/cancelled":          {notification: true, values: []string{"requestId"}},
	"server/discover":                  {era: messages.EraModern},
	"subscriptions/listen":             {era: messages.EraModern, objects: []string{"notifications"}},
	"tasks/update":                     {era: messages.EraModern, texts: []string{"taskId"}},
	"tools/list":                       {},
	"tools/call":                       {texts: []string{"name"}},
	"resources/list":                   {},
	"resources/templates/list":         {},
	"resources/read":                   {texts: []string{"uri"}},
	"prompts/list":                     {},
	"prompts/get":                      {texts: []string{"name"}},
	"completion/complete":              {objects: []string{"ref", "argument"}},
	"tasks/get":                        {texts: []string{"taskId"}},
	"tasks/cancel":                     {texts: []string{"taskId"}},
}

// checkMethod judges a message by the rule of its method and by the capabilities of the server.
func (c *conversation) checkMethod(m *message) {
	method := *m.Method
	rule, known := methodRules[method]
	switch {
	case !known:
		c.reportProblem("it was sent %s, which no client may send", messages.Line(method, 60))
		return
	case rule.notification != (m.ID == nil):
		c.reportProblem("it was sent %s with the id %q", method, string(m.ID))
		return
	}
	for _, name := range rule.texts {
		if textOf(m.params[name]) == "" {
			c.reportProblem("%s has no %s: %s", method, name, messages.Line(string(m.Params), 120))
		}
	}
	for _, name := range rule.objects {
		if !isObject(m.params[name]) {
			c.reportProblem("%s has no object %s: %s", method, name, messages.Line(string(m.Params), 120))
		}
	}
	for _, name := range rule.values {
		if m.params[name] == nil {
			c.reportProblem("%s has no %s: %s", method, name, messages.Line(string(m.Params), 120))
		}
	}
	if arguments := m.params["arguments"]; arguments != nil && !isObject(arguments) {
		c.reportProblem("the arguments of %s are no object: %s", method, messages.Line(string(arguments), 120))
	}
	// The caller of any other request of the modern era may answer for itself, and can do something else then.
	switch method {
	case "initialize":
		c.checkDeclared(method, m.params["capabilities"])
	case "server/discover":
		c.checkDeclared(method, m.meta[metaPrefix+"clientCapabilities"])
	}
	// 2025-11-25: "Both parties MUST … only use capabilities that were successfully negotiated."
	if scenario.IsOfferMethod(method) && !c.server.HasMethod(method) || strings.HasPrefix(method, "tasks/") && c.server.Tasks == "" {
		c.reportProblem("it was sent %s, and never said that it can do that", method)
	}
}

// checkDeclared judges that a client declares what its program can do: of one that does not the server asks nothing.
func (c *conversation) checkDeclared(method string, capabilities json.RawMessage) {
	var said map[string]json.RawMessage
	_ = json.Unmarshal(capabilities, &said) // another rule judges values that are no object
	for _, name := range c.declared {
		if said[name] == nil {
			c.reportProblem("%s does not declare that its client can do %s", method, name)
		}
	}
}

// checkEra judges that a message is of the agreed era, and in its place in the handshake. A modern request names its version in
// _meta, a legacy one does not.
func (c *conversation) checkEra(m *message) {
	method := *m.Method
	rule := methodRules[method]
	// These notifications have the same form in both eras.
	if rule.notification && rule.era != messages.EraLegacy {
		return
	}
	version := textOf(m.meta[metaPrefix+"protocolVersion"])
	isModern := version != ""
	switch {
	case isModern && rule.era == messages.EraLegacy:
		c.reportProblem("%s is of the legacy era, and says the version %s as requests of the modern one do", method, version)
	case !isModern && rule.era == messages.EraModern:
		c.reportProblem("%s says no version: 2026-07-28, \"_meta … MUST include protocolVersion\"", method)
	case isModern && !isObject(m.meta[metaPrefix+"clientCapabilities"]):
		c.reportProblem("%s does not say the client's capabilities: 2026-07-28, \"A request missing any required field is malformed\"", method)
	case isModern && c.initialized:
		c.reportProblem("%s is of the modern era, and %s was agreed on by initialize", method, c.version)
	case !isModern && c.modern:
		c.reportProblem("%s is of the legacy era, and this server has answered requests of the modern one", method)
	case !isModern:
		c.checkHandshake(method)
	}
}

// checkHandshake judges the place of a legacy message in the handshake.
//
// 2025-11-25: "The client SHOULD NOT send requests other than pings before the server has responded to the initialize request",
// and "After successful initialization, the client MUST send an initialized notification".
func (c *conversation) checkHandshake(method string) {
	switch {
	case method == "initialize" && c.version != "":
		c.reportProblem("it was sent initialize again, after it had agreed on %s", c.version)
	case method == "initialize" || method == "ping":
	case c.version == "":
		c.reportProblem("it was sent %s before it had answered initialize", method)
	case method == "notifications/initialized" && c.initialized:
		// If it was refused and comes again, the handshake goes on.
		if c.ended = false; !c.isSentAgain() {
			c.reportProblem("it was sent notifications/initialized twice")
		}
	case method == "notifications/initialized":
		c.initialized = true
	case !c.initialized:
		c.reportProblem("it was sent %s before notifications/initialized", method)
	}
}

// checkHeaders judges the headers of a message over streamable HTTP. The other transports have none.
func (c *conversation) checkHeaders(m *message) {
	if m.header == nil || c.server.Kind != messages.HTTP {
		return
	}
	method := *m.Method
	version := textOf(m.meta[metaPrefix+"protocolVersion"])
	if version != "" {
		// 2026-07-28: each POST repeats the version, the method, and the name of what is called or read.
		c.checkHeader(m, "Mcp-Protocol-Version", version)
		c.checkHeader(m, "Mcp-Method", method)
		switch method {
		case "tools/call", "prompts/get":
			c.checkHeader(m, "Mcp-Name", textOf(m.params["name"]))
		case "resources/read":
			c.checkHeader(m, "Mcp-Name", textOf(m.params["uri"]))
		}
		if session := m.header["Mcp-Session-Id"]; session != "" {
			c.reportProblem("%s has the session %s: the modern era has none", method, messages.Line(session, 60))
		}
		return
	}
	if !c.initialized { // before the end of the handshake no version is agreed on
		return
	}
	// 2025-06-18: "the client MUST include the MCP-Protocol-Version: <protocol-version> HTTP header on all subsequent requests".
	if c.version >= "2025-06-18" {
		c.checkHeader(m, "Mcp-Protocol-Version", c.version)
	}
	// 2025-03-26: "clients using the Streamable HTTP transport MUST include it in the Mcp-Session-Id header on all of their
	// subsequent HTTP requests."
	if n := len(c.sessions); n > 0 && !slices.Contains(c.sessions, m.header["Mcp-Session-Id"]) {
		c.checkHeader(m, "Mcp-Session-Id", c.sessions[n-1])
	}
}

// checkHeader judges that a header has a value, in plain or in encoded form.
func (c *conversation) checkHeader(m *message, name, want string) {
	if got := decodeHeader(m.header[name]); got != want {
		c.reportProblem("the header %s of %s is %q, and %q belongs there", name, *m.Method, got, want)
	}
}

// decodeHeader undoes the base64 form in which a header carries a value that is not plain ASCII.
func decodeHeader(value string) string {
	inside, hasPrefix := strings.CutPrefix(value, "=?base64?")
	inside, hasSuffix := strings.CutSuffix(inside, "?=")
	if b, err := base64.StdEncoding.DecodeString(inside); hasPrefix && hasSuffix && err == nil {
		return string(b)
	}
	return value
}
