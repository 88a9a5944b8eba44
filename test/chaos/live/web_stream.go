package live

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// stream is the opening of HTTP+SSE (2024-11-05): a GET, whose response carries everything that the server says. It is
// the connection.
func (w *web) stream(rw http.ResponseWriter, req *http.Request) {
	x := newExchange(rw, req, envelope{})
	x.sse = true
	c := newSession(w)
	c.stream = x
	w.seat.mu.Lock()
	w.lastGasp()
	w.seat.attachLocked(func(conn int) link { c.conn = conn; return c })
	w.seat.mu.Unlock()
	x.run(func() { c.hungUp(x) })
}

// hungUp is called when the stream of HTTP+SSE is over. If the client has ended it, the server is told.
func (c *session) hungUp(x *exchange) {
	s := c.web.seat
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stream != x {
		return
	}
	c.stream = nil
	if x.req.Context().Err() != nil && c.accepted {
		c.closing = true
		s.tellLocked(func(now time.Duration) []peer.Action { return s.machine.Closed(now, c.conn, false) })
	}
	c.forgetLocked()
}

// endpoint is where the messages of this connection go.
func (c *session) endpoint() string { return fmt.Sprintf("/mcp?connection=%d", c.conn) }

// take is one message over HTTP+SSE. Its answer comes on the stream.
func (w *web) take(rw http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, req.Body, maxBody))
	if err != nil {
		return
	}
	conn, _ := strconv.Atoi(req.URL.Query().Get("connection")) // 0 belongs to nobody
	x := newExchange(rw, req, read(body))
	w.seat.mu.Lock()
	if c, ok := w.seat.links[conn].(*session); ok {
		c.take(x, body, headers(req.Header))
	} else {
		x.tell(status(http.StatusNotFound))
	}
	w.seat.mu.Unlock()
	x.run(func() {})
}
