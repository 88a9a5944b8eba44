package web

import (
	"context"
	"net/http"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
)

// mayFallBack reports, once per connection, whether a refused initialize means a server of the version 2024-11-05.
//
// 2025-11-25, Backwards Compatibility: "If it fails with the following HTTP status codes \"400 Bad Request\", \"404 Not Found\"
// or \"405 Method Not Allowed\": Issue a GET request to the server URL, expecting that this will open an SSE stream and return an
// endpoint event as the first event." 2026-07-28 adds: "and the response body is not a recognized modern JSON-RPC error".
//
// Refusals of other messages do not count: a server of either older kind may refuse the question for the era (server/discover) in
// any way.
func (c *httpConn) mayFallBack(e *transports.Error) bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return false
	}
	if origin.IsModern(e) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	may := c.canFallBack
	c.canFallBack = false
	return may
}

// fallBack turns the connection into one of SSE and sends the message there. refused is the error of streamable HTTP; it stays
// the error if there is no SSE either, because it is about the address that was configured.
func (c *httpConn) fallBack(ctx context.Context, m transports.Message, refused *transports.Error) (transports.Delivery, error) {
	older, err := openSSE(ctx, c.origin, c.lifetime)
	if err == nil {
		c.sseFallback.Store(older)
		return older.Send(ctx, m)
	}
	// These say that SSE itself was refused or cut off, and so are worth more to the caller than the first refusal.
	switch err.Class {
	case messages.ClassUnauthorized, messages.ClassThrottled, messages.ClassCanceled, messages.ClassTimeout:
		return transports.Written, err
	}
	both := *refused
	both.Text += "; as HTTP+SSE: " + err.Text
	return transports.Written, &both
}
