package transports

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The header names of MCP, in Go's canonical form. Names of headers do not depend on case.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// httpConn is one connection of HTTP. It holds no socket of its own: the client's pool does.
type httpConn struct {
	origin *origin
	life   *life
	grace  time.Duration

	// older is set for good when the server turned out to speak HTTP+SSE: everything goes there then.
	older atomic.Pointer[sseConn]

	resumer Resumer // the sink, if it is one
	relater Relater // likewise

	// ends is when the streams of answers end.
	ends ends

	mu        sync.Mutex
	fallback  bool // an initialize that is refused may still turn the connection into SSE
	session   string
	version   string
	posting   *fields // of a POST with that session and version; nil until one is needed
	listening bool
	hears     bool                // the stream for unasked messages is open, or will be again
	hearing   chan struct{}       // closed when its first opening has succeeded or failed; nil before listen
	since     time.Time           // when listen began
	waiting   map[int64]*exchange // the requests under way, by their ids; legacy era only
}

var _ Conn = (*httpConn)(nil)

// Negotiated implements Conn.
func (c *httpConn) Negotiated(protocolVersion string) {
	c.mu.Lock()
	c.version, c.posting = protocolVersion, nil
	c.mu.Unlock()
	if older := c.older.Load(); older != nil {
		older.Negotiated(protocolVersion)
	}
}

// Close implements Conn.
func (c *httpConn) Close(ctx context.Context) error { return c.life.close(ctx) }

// Released implements Conn.
func (c *httpConn) Released() <-chan struct{} { return c.life.released }

// Info implements Conn.
func (c *httpConn) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Info{SessionID: c.session}
}

// state holds the values that the headers of the next request depend on.
func (c *httpConn) state() (session, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.version
}

// begin makes a request of the legacy era known to the connection's other streams, until forget, and gives it what its
// headers depend on.
func (c *httpConn) begin(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.posting == nil {
		h := sessionHeader(c.session, c.version)
		postHeader(h)
		c.posting = &fields{own: h}
	}
	x.session, x.version, x.fields = c.session, c.version, c.posting
	if x.m.ID == 0 {
		return
	}
	if c.waiting == nil {
		c.waiting = make(map[int64]*exchange)
	}
	c.waiting[x.m.ID] = x
}

// sessionHeader is the part of the headers that all methods share.
//
// 2025-11-25, Session Management: "If an MCP-Session-Id is returned by the server during initialization, clients using
// the Streamable HTTP transport MUST include it in the MCP-Session-Id header on all of their subsequent HTTP requests."
// Protocol Version Header: "the client MUST include the MCP-Protocol-Version: <protocol-version> HTTP header on all
// subsequent requests to the MCP server".
func sessionHeader(session, version string) http.Header {
	h := make(http.Header, 5)
	if session != "" {
		h[headerSession] = []string{session}
	}
	if version != "" {
		h[headerVersion] = []string{version}
	}
	return h
}

// postHeader adds what every POST carries.
//
// 2025-11-25, Sending Messages to the Server: "The client MUST include an Accept header, listing both application/json
// and text/event-stream as supported content types."
func postHeader(h http.Header) {
	h["Content-Type"] = []string{"application/json"}
	h["Accept"] = []string{"application/json, text/event-stream"}
}

// capture takes the session id from the answer to initialize.
//
// "The session ID MUST only contain visible ASCII characters (ranging from 0x21 to 0x7E)." An id that does not cannot
// be echoed as it is.
func (c *httpConn) capture(h http.Header) *Error {
	id := h.Get(headerSession)
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return &Error{Class: messages.ClassProtocol, Text: c.origin.label + " gave a session id that is not allowed"}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.posting = id, nil
	c.fallback = false
	return nil
}

// sayGoodbye is the farewell of a session that we close.
//
// "Clients that no longer need a particular session … SHOULD send an HTTP DELETE to the MCP endpoint with the
// MCP-Session-Id header, to explicitly terminate the session." Whether it arrives changes nothing for us, so no caller
// learns how it went.
func (c *httpConn) sayGoodbye(cause *Error) {
	session, version := c.state()
	if session == "" || cause.Class != messages.ClassCanceled || c.older.Load() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.grace)
	defer cancel()
	resp, _, err := c.origin.roundTrip(ctx, http.MethodDelete, c.origin.url,
		&fields{own: sessionHeader(session, version)}, nil)
	if err != nil {
		return
	}
	startOf(resp.Body, cancel)
	_ = resp.Body.Close()
}

// lost ends the connection if the server has forgotten its session. It returns e.
//
// "When a client receives HTTP 404 in response to a request containing an MCP-Session-Id, it MUST start a new session":
// that is a new connection, and the layer above opens it.
func (c *httpConn) lost(e *Error) *Error {
	if e.Class == messages.ClassSession {
		c.life.end(e)
	}
	return e
}
