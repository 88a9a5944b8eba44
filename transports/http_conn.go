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
	origin   *origin
	lifetime *lifetime
	grace    time.Duration

	// sseFallback is set for good when the server turned out to speak HTTP+SSE: everything goes there then.
	sseFallback atomic.Pointer[sseConn]

	reopenSink  StreamReopenSink  // the sink, if it is one
	requestSink RequestStreamSink // likewise

	// endTimes is when the streams of answers end.
	endTimes streamEndTimes

	mu              sync.Mutex
	canFallBack     bool // an initialize that is refused may still turn the connection into SSE
	session         string
	version         string
	postHeaders     *headerSet // of a POST with that session and version; nil until one is needed
	listening       bool
	hasListenStream bool                // the stream for unasked messages is open, or will be again
	listenReady     chan struct{}       // closed when its first opening has succeeded or failed; nil before listen
	listenSince     time.Time           // when listen began
	pending         map[int64]*exchange // the requests under way, by their ids; legacy era only
}

var _ Conn = (*httpConn)(nil)

// Negotiated implements Conn.
func (c *httpConn) Negotiated(protocolVersion string) {
	c.mu.Lock()
	c.version, c.postHeaders = protocolVersion, nil
	c.mu.Unlock()
	if older := c.sseFallback.Load(); older != nil {
		older.Negotiated(protocolVersion)
	}
}

// Close implements Conn.
func (c *httpConn) Close(ctx context.Context) error { return c.lifetime.close(ctx) }

// Released implements Conn.
func (c *httpConn) Released() <-chan struct{} { return c.lifetime.released }

// Info implements Conn.
func (c *httpConn) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Info{SessionID: c.session}
}

// sessionAndVersion holds the values that the headers of the next request depend on.
func (c *httpConn) sessionAndVersion() (session, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session, c.version
}

// beginExchange makes a request of the legacy era known to the connection's other streams, until forget, and gives it what its
// headers depend on.
func (c *httpConn) beginExchange(x *exchange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.postHeaders == nil {
		h := sessionHeader(c.session, c.version)
		setPostHeaders(h)
		c.postHeaders = &headerSet{own: h}
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

// setPostHeaders adds what every POST carries.
//
// 2025-11-25, Sending Messages to the Server: "The client MUST include an Accept header, listing both application/json
// and text/event-stream as supported content types."
func setPostHeaders(h http.Header) {
	h["Content-Type"] = []string{"application/json"}
	h["Accept"] = []string{"application/json, text/event-stream"}
}

// captureSession takes the session id from the answer to initialize.
//
// "The session ID MUST only contain visible ASCII characters (ranging from 0x21 to 0x7E)." An id that does not cannot
// be echoed as it is.
func (c *httpConn) captureSession(h http.Header) *Error {
	id := h.Get(headerSession)
	for i := range len(id) {
		if id[i] < 0x21 || id[i] > 0x7e {
			return &Error{Class: messages.ClassProtocol, Text: c.origin.label + " gave a session id that is not allowed"}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.postHeaders = id, nil
	c.canFallBack = false
	return nil
}

// deleteSession is the farewell of a session that we close.
//
// "Clients that no longer need a particular session … SHOULD send an HTTP DELETE to the MCP endpoint with the
// MCP-Session-Id header, to explicitly terminate the session." Whether it arrives changes nothing for us, so no caller
// learns how it went.
func (c *httpConn) deleteSession(cause *Error) {
	session, version := c.sessionAndVersion()
	if session == "" || cause.Class != messages.ClassCanceled || c.sseFallback.Load() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.grace)
	defer cancel()
	resp, _, err := c.origin.roundTrip(ctx, http.MethodDelete, c.origin.url,
		&headerSet{own: sessionHeader(session, version)}, nil)
	if err != nil {
		return
	}
	readErrorBody(resp.Body, cancel)
	_ = resp.Body.Close()
}

// endIfSessionLost ends the connection if the server has forgotten its session. It returns e.
//
// "When a client receives HTTP 404 in response to a request containing an MCP-Session-Id, it MUST start a new session":
// that is a new connection, and the layer above opens it.
func (c *httpConn) endIfSessionLost(e *Error) *Error {
	if e.Class == messages.ClassSession {
		c.lifetime.endConn(e)
	}
	return e
}
