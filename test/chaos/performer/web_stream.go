package performer

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// serveSSE opens a connection over HTTP+SSE (2024-11-05): a GET whose response carries every message of the server. This stream
// is the connection.
func (w *webEndpoint) serveSSE(rw http.ResponseWriter, req *http.Request) {
	x := newHTTPExchange(rw, req, envelope{})
	x.sse = true
	c := newHTTPSession(w)
	c.stream = x
	w.owner.mu.Lock()
	w.awaitConnEnds()
	w.owner.addConnLocked(func(conn int) serverConn { c.conn = conn; return c })
	w.owner.mu.Unlock()
	x.runDirectives(func() { c.handleStreamEnd(x) })
}

// handleStreamEnd releases the connection when its stream has ended. If the client ended it, the machine learns that first.
func (c *httpSession) handleStreamEnd(x *httpExchange) {
	s := c.web.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stream != x {
		return
	}
	c.stream = nil
	if x.req.Context().Err() != nil && c.accepted {
		c.clientClosed = true
		s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Closed(now, c.conn, false) })
	}
	c.forgetConnLocked()
}

// messagePath returns the path to which the client of this connection posts its messages.
func (c *httpSession) messagePath() string { return fmt.Sprintf("/mcp?connection=%d", c.conn) }

// serveSSEMessage handles one message over HTTP+SSE. The POST is answered with 202; the answer comes on the stream.
func (w *webEndpoint) serveSSEMessage(rw http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, req.Body, maxBody))
	if err != nil {
		return
	}
	// A missing number gives 0, which no connection has.
	conn, _ := strconv.Atoi(req.URL.Query().Get("connection"))
	x := newHTTPExchange(rw, req, parseEnvelope(body))
	w.owner.mu.Lock()
	if c, ok := w.owner.conns[conn].(*httpSession); ok {
		c.takeMessage(x, body, flattenHeader(req.Header))
	} else {
		x.addDirective(statusDirective(http.StatusNotFound))
	}
	w.owner.mu.Unlock()
	x.runDirectives(func() {})
}
