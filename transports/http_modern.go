package transports

import (
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The headers of the modern era, 2026-07-28 on. They repeat parts of the message, so that a proxy between client and server can
// route it without reading it.
const (
	headerMethod = "Mcp-Method"
	headerName   = "Mcp-Name"
	// headerParam begins the names of the headers that a tool's schema asks for.
	headerParam = "Mcp-Param-"
)

// modernHeaders returns the headers of a message of the modern era. An error means that the message cannot be sent.
//
// 2026-07-28, Standard Request Headers: Mcp-Method is "Required For All requests", Mcp-Name, from "params.name or
// params.uri", for "tools/call, resources/read, prompts/get requests". The extension for tasks adds the methods that
// are about one task, by its id.
func (o *origin) modernHeaders(m Message) (*headerSet, *Error) {
	h := make(http.Header, 5+len(m.Header))
	h[headerVersion] = []string{m.Version}
	setPostHeaders(h)
	// Only headers of parameters may come with a message: any other one could replace a header of the transport.
	for name, value := range m.Header {
		key := textproto.CanonicalMIMEHeaderKey(name)
		if !strings.HasPrefix(key, headerParam) || key == headerParam ||
			!httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, &Error{Class: messages.ClassInvalid, Text: "the message for " + o.label +
				" asks for a header that it cannot have, " + messages.Line(name, 100)}
		}
		h[key] = []string{value}
	}
	h[headerMethod] = []string{m.Method}
	switch m.Method {
	case "tools/call", "prompts/get", "resources/read", "tasks/get", "tasks/update", "tasks/cancel":
		h[headerName] = []string{HeaderValue(m.Name)}
	}
	return &headerSet{own: h}, nil
}

// isCancellation reports whether the message is not sent over HTTP, because the end of a Send says the same.
//
// 2026-07-28: "on Streamable HTTP, closing the SSE response stream is itself the cancellation signal and no
// notifications/cancelled message is expected".
func (m *Message) isCancellation() bool {
	return m.Version != "" && m.Method == "notifications/cancelled"
}
