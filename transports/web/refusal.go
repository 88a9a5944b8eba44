package web

import (
	"net/http"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
)

// RefusalError returns the error of a response that is no success, as [HTTP] and [SSE] make it. A transport of another kind, or
// one in memory, uses it to translate refusals in terms of HTTP. label names the server in the text, body is the start of the
// response's body, and session says that the request carried a session id. No secret is taken out of the error.
func RefusalError(label string, resp *http.Response, body []byte, session bool) *transports.Error {
	id := ""
	if session {
		// StatusError only asks whether there is an id; no server writes this one into a body, where it would be hidden.
		id = "\x00"
	}
	return (&origin.Origin{Label: label}).StatusError(resp, body, id)
}
