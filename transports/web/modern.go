package web

import (
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
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
func modernHeaders(o *origin.Origin, m transports.Message) (*origin.HeaderSet, *transports.Error) {
	h := make(http.Header, 5+len(m.Header))
	h[origin.HeaderVersion] = []string{m.Version}
	setPostHeaders(h)
	// Only headers of parameters may come with a message: any other one could replace a header of the transport.
	for name, value := range m.Header {
		key := textproto.CanonicalMIMEHeaderKey(name)
		if !strings.HasPrefix(key, headerParam) || key == headerParam ||
			!httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, &transports.Error{Class: messages.ClassInvalid, Text: "the message for " + o.Label +
				" asks for a header that it cannot have, " + messages.Line(name, 100)}
		}
		h[key] = []string{value}
	}
	h[headerMethod] = []string{m.Method}
	switch m.Method {
	case "tools/call", "prompts/get", "resources/read", "tasks/get", "tasks/update", "tasks/cancel":
		h[headerName] = []string{transports.HeaderValue(m.Name)}
	}
	return &origin.HeaderSet{Own: h}, nil
}

// isCancellation reports whether the message is not sent over HTTP, because the end of a Send says the same.
//
// 2026-07-28: "on Streamable HTTP, closing the SSE response stream is itself the cancellation signal and no
// notifications/cancelled message is expected".
func isCancellation(m *transports.Message) bool {
	return m.Version != "" && m.Method == "notifications/cancelled"
}
