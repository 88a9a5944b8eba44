package serve

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// The keys of _meta that the modern era reserves.
const (
	metaPrefix       = "io.modelcontextprotocol/"
	metaVersion      = metaPrefix + "protocolVersion"
	metaCapabilities = metaPrefix + "clientCapabilities"
	metaServerInfo   = metaPrefix + "serverInfo"
	metaLogLevel     = metaPrefix + "logLevel"
)

// isModern reports to which era a message over HTTP belongs. A message that names a version in its _meta is one of the modern era,
// and so is one whose header names a version that the legacy era does not have.
func isModern(h http.Header, m *message) bool {
	if rawjson.Member(m.meta, metaVersion) != nil {
		return true
	}
	v := headerOf(h, "Mcp-Protocol-Version")
	return v != "" && headerOf(h, "Mcp-Session-Id") == "" && !slices.Contains(legacyVersions, v) && m.method != "initialize"
}

// serveModern handles a message of the modern era over HTTP.
func (h *Handler) serveModern(x *exchange) {
	w, r, m := x.w, x.r, &x.message
	switch {
	case m.isAnswer():
		// 2026-07-28: "The client MUST NOT send JSON-RPC responses."
		writeError(w, nil, refused(CodeInvalidRequest, "an agent of the modern era sends no answers: it repeats its request with them"))
		return
	case !m.isRequest():
		// Its notifications are about requests of one connection, which HTTP does not have.
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var q *Request
	e := checkHeaders(r.Header, m)
	if e == nil {
		q, e = newModernRequest(&Session{Principal: x.principal, Path: x.path, Modern: true}, m)
	}
	if e == nil {
		q.Header = r.Header
		if result, answered, problem := answerModern(h.o.Service, q); answered {
			e = problem
			if e == nil {
				writeJSON(w, http.StatusOK, appendResult(nil, m.id, result))
				return
			}
		}
	}
	if e != nil {
		writeJSON(w, e.httpStatus(true), appendError(nil, m.id, e))
		return
	}
	// 2026-07-28: "closing the SSE response stream is itself the cancellation signal".
	h.answerRequest(r.Context(), x, q)
}

// newModernRequest reads what a request of the modern era says of itself.
//
// 2026-07-28, Per-request protocol fields: "fields marked as required MUST be included on every request".
func newModernRequest(s *Session, m *message) (*Request, *Error) {
	r := &Request{Session: s, Method: m.method, ID: m.id, Params: m.params, Meta: m.meta}
	var version []byte
	if m.meta != nil {
		for o := rawjson.ObjectAt(m.meta, 0, 0); o.Next(); {
			switch value := o.Skip(); string(o.Name) {
			case metaVersion:
				version = value
			case metaCapabilities:
				r.Capabilities = value
			case metaLogLevel:
				r.LogLevel, _ = rawjson.Text(value)
			}
		}
	}
	var ok bool
	if s.Version, ok = rawjson.Text(version); !ok {
		return nil, refused(CodeInvalidParams, "_meta must have "+metaVersion)
	}
	if s.Version != modernVersion {
		data := append([]byte(`{"supported":["`+modernVersion+`"],"requested":`), version...)
		return nil, &Error{Code: CodeUnsupportedVersion, Message: "Unsupported protocol version", Data: append(data, '}')}
	}
	if !rawjson.IsObject(r.Capabilities) {
		return nil, refused(CodeInvalidParams, "_meta must have "+metaCapabilities)
	}
	if len(r.Capabilities) > maxCapabilities {
		return nil, capabilitiesError()
	}
	s.Capabilities = r.Capabilities
	return r, nil
}

// answerModern answers the requests that need no service: discover, and methods that the era does not have any more.
func answerModern(service Service, r *Request) (result []byte, answered bool, e *Error) {
	switch r.Method {
	case "server/discover":
		d, e := service.Describe(r.Session)
		if e != nil {
			return nil, true, e
		}
		return appendDiscovery(nil, d), true, nil
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		return nil, true, MethodNotFound(r.Method)
	}
	return nil, false, nil
}

func appendDiscovery(b []byte, d Description) []byte {
	b = append(b, `{"resultType":"complete","supportedVersions":["`+modernVersion+`"],"capabilities":`...)
	b = append(b, d.Capabilities...)
	if d.Instructions != "" {
		b = rawjson.AppendText(append(b, `,"instructions":`...), d.Instructions)
	}
	if d.CacheHints != "" {
		b = append(append(b, ','), d.CacheHints...)
	}
	b = append(b, `,"_meta":{"`+metaServerInfo+`":`...)
	return append(append(b, d.ServerInfo...), "}}"...)
}

// withResultType returns a result with the member that the modern era demands, unless it has one.
func withResultType(result []byte) []byte {
	if rawjson.Member(result, "resultType") != nil {
		return result
	}
	b := make([]byte, 0, len(result)+24)
	b = append(b, `{"resultType":"complete"`...)
	i := rawjson.SkipSpace(result, 1)
	if result[i] != '}' {
		b = append(b, ',')
	}
	return append(b, result[i:]...)
}

// checkHeaders compares the headers with the message.
//
// 2026-07-28: "Servers that process the request body MUST reject requests where the values specified in the headers do not match the
// values in the request body", with 400 and HeaderMismatch.
func checkHeaders(h http.Header, m *message) *Error {
	version, _ := rawjson.Text(rawjson.Member(m.meta, metaVersion))
	if version == "" {
		return nil // the request is refused for its _meta
	}
	if !oneHeader(h, "Mcp-Protocol-Version", version) {
		return headerMismatch("MCP-Protocol-Version")
	}
	if version != modernVersion {
		return nil // the request is refused for its version
	}
	if !oneHeader(h, "Mcp-Method", m.method) {
		return headerMismatch("Mcp-Method")
	}
	var member string
	switch m.method {
	case "tools/call", "prompts/get":
		member = "name"
	case "resources/read":
		member = "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		// Tasks extension: "the client MUST set the Mcp-Name header to the value of params.taskId".
		member = "taskId"
	default:
		return nil
	}
	name, ok := rawjson.Text(rawjson.Member(m.params, member))
	if !ok {
		return nil // the request is refused for its params
	}
	if !oneHeader(h, "Mcp-Name", name) {
		return headerMismatch("Mcp-Name")
	}
	return nil
}

func headerMismatch(name string) *Error {
	return &Error{Code: CodeHeaderMismatch, Message: "the header " + name + " does not match the message"}
}

// oneHeader reports whether a header is there once, with a value.
func oneHeader(h http.Header, name, value string) bool {
	values := h[name]
	if len(values) != 1 {
		return false
	}
	got, ok := DecodeHeader(values[0])
	return ok && got == value
}

// DecodeHeader returns the value that a header Mcp-Name or Mcp-Param-… stands for; false if it stands for none.
//
// 2026-07-28: "Servers MUST reject requests with a recognized Mcp-Param-{Name} header that contains invalid characters". A header that only
// begins or ends as an encoded one is plain.
func DecodeHeader(header string) (value string, ok bool) {
	header = strings.Trim(header, " \t")
	if inside, begins := strings.CutPrefix(header, "=?base64?"); begins {
		if inside, ends := strings.CutSuffix(inside, "?="); ends {
			b, err := base64.StdEncoding.DecodeString(inside)
			return string(b), err == nil
		}
	}
	for i := range len(header) {
		if c := header[i]; c > '~' || c < ' ' && c != '\t' {
			return "", false
		}
	}
	return header, true
}
