package web

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/lifetime"
	"github.com/mcpvisor/mcpvisor/transports/internal/origin"
)

// httpConn is one connection of HTTP. It holds no socket of its own; the client's pool does. Its only goroutine of long life
// reads the stream for unasked messages; each Send runs in its caller's goroutine.
type httpConn struct {
	origin   *origin.Origin
	lifetime *lifetime.Lifetime
	grace    time.Duration
	rand     func() float64 // Config.Rand

	// sseFallback is set once, when the server turned out to speak HTTP+SSE: every later message goes there.
	sseFallback atomic.Pointer[sseConn]

	reopenSink  transports.StreamReopenSink  // the sink, if it is one
	requestSink transports.RequestStreamSink // likewise

	// endTimes notes how soon after their answers the streams of this server end.
	endTimes streamEndTimes

	// mu guards everything below.
	mu sync.Mutex
	// canFallBack is true, with FallbackSSE, until an initialize has succeeded, or was refused as by a server of HTTP+SSE.
	canFallBack bool
	session     string
	// session and version are empty before the handshake's answer has brought them.
	version string
	// postHeaders has the headers of a POST with that session and version; nil until one is needed.
	postHeaders *origin.HeaderSet
	listening   bool
	// hasListenStream is true while the stream for unasked messages is open, or will be again.
	hasListenStream bool
	// listenReady is closed when the first opening has succeeded or failed; nil before startListening, which also sets
	// listenSince.
	listenReady chan struct{}
	listenSince time.Time
	// pending has the requests under way by their ids; legacy era only.
	pending map[int64]*exchange
}

var _ transports.Conn = (*httpConn)(nil)

// Negotiated implements Conn. The headers of later requests carry the version.
func (c *httpConn) Negotiated(protocolVersion string) {
	c.mu.Lock()
	c.version, c.postHeaders = protocolVersion, nil
	c.mu.Unlock()
	if older := c.sseFallback.Load(); older != nil {
		older.Negotiated(protocolVersion)
	}
}

// Close implements Conn.
func (c *httpConn) Close(ctx context.Context) error { return c.lifetime.Close(ctx) }

// Released implements Conn.
func (c *httpConn) Released() <-chan struct{} { return c.lifetime.Released }

// Info implements Conn. The session id is empty for servers that give none.
func (c *httpConn) Info() transports.Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return transports.Info{SessionID: c.session}
}

// sessionAndVersion returns the values that the headers of the next request depend on.
func (c *httpConn) sessionAndVersion() (session, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.version
}

// beginExchange gives a request of the legacy era its headers, and makes it known to the connection's other streams until
// forgetExchange, because its answer may come on one of them.
func (c *httpConn) beginExchange(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// They are built once for all requests, which saves most of the allocations of a small call.
	if c.postHeaders == nil {
		h := sessionHeader(c.session, c.version)
		setPostHeaders(h)
		c.postHeaders = &origin.HeaderSet{Own: h}
	}
	x.session, x.version, x.headers = c.session, c.version, c.postHeaders
	if x.m.ID == 0 {
		return
	}
	if c.pending == nil {
		c.pending = make(map[int64]*exchange)
	}
	c.pending[x.m.ID] = x
}

// sessionHeader returns the headers that all methods share. An empty session or version leaves its header out.
//
// 2025-11-25, Session Management: "If an MCP-Session-Id is returned by the server during initialization, clients using
// the Streamable HTTP transport MUST include it in the MCP-Session-Id header on all of their subsequent HTTP requests."
// Protocol Version Header: "the client MUST include the MCP-Protocol-Version: <protocol-version> HTTP header on all
// subsequent requests to the MCP server".
func sessionHeader(session, version string) http.Header {
	h := make(http.Header, 5)
	if session != "" {
		h[origin.HeaderSession] = []string{session}
	}
	if version != "" {
		h[origin.HeaderVersion] = []string{version}
	}
	return h
}

// setPostHeaders adds the headers that every POST carries.
//
// 2025-11-25, Sending Messages to the Server: "The client MUST include an Accept header, listing both application/json
// and text/event-stream as supported content types."
func setPostHeaders(h http.Header) {
	h["Content-Type"] = []string{"application/json"}
	h["Accept"] = []string{"application/json, text/event-stream"}
}

// captureSession takes the session id from the answer to initialize. An initialize without an id gives a connection without
// session.
//
// "The session ID MUST only contain visible ASCII characters (ranging from 0x21 to 0x7E)." Any other id could not be echoed as it
// is in a header.
func (c *httpConn) captureSession(h http.Header) *transports.Error {
	id := h.Get(origin.HeaderSession)
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return &transports.Error{Class: messages.ClassProtocol, Text: c.origin.Label + " gave a session id that is not allowed"}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.postHeaders = id, nil
	c.canFallBack = false
	return nil
}

// deleteSession ends the server's session after Close. It does nothing if the connection ended for another reason, because the
// server may not answer, or has no session any more.
//
// "Clients that no longer need a particular session … SHOULD send an HTTP DELETE to the MCP endpoint with the MCP-Session-Id
// header, to explicitly terminate the session." The result does not matter here, so that no caller learns of it. Grace bounds it.
func (c *httpConn) deleteSession(cause *transports.Error) {
	session, version := c.sessionAndVersion()
	if session == "" || cause.Class != messages.ClassCanceled || c.sseFallback.Load() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.grace)
	defer cancel()
	resp, _, err := c.origin.RoundTrip(ctx, http.MethodDelete, c.origin.URL,
		&origin.HeaderSet{Own: sessionHeader(session, version)}, nil)
	if err != nil {
		return
	}
	origin.ReadErrorBody(resp.Body, cancel)
	_ = resp.Body.Close()
}

// endIfSessionLost ends the connection if the server has forgotten its session. It returns e.
//
// "When a client receives HTTP 404 in response to a request containing an MCP-Session-Id, it MUST start a new session": that is a
// new connection, which the server's actor opens.
func (c *httpConn) endIfSessionLost(e *transports.Error) *transports.Error {
	if e.Class == messages.ClassSession {
		c.lifetime.End(e)
	}
	return e
}
