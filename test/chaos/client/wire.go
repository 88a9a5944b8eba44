package client

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// wire reads what the client of one server sends, and reports what the protocol forbids whatever the server does: check C10.
type wire struct {
	name string
	plan scenario.Server
	now  func() time.Duration
	// report records a breach of the check with this id; cancelled is told of calls that the client cancels. Neither blocks.
	report    func(check, text string)
	cancelled func(call string)
}

// wireMessage holds the members of a message of the client that are looked at.
type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Version   string          `json:"protocolVersion"`
		RequestID json.RawMessage `json:"requestId"`
		Arguments struct {
			Call string `json:"call"`
		} `json:"arguments"`
	} `json:"params"`
}

// isRequest reports whether a message asks for an answer.
func (m *wireMessage) isRequest() bool { return m.Method != "" && len(m.ID) > 0 }

// request is what is known of a request of one connection or session.
type request struct {
	method, call string
	at           time.Duration
}

// wireConn is what a client has sent over one stdio connection, or in one session over HTTP.
type wireConn struct {
	requests map[string]request
	// version is that of the client's initialize, empty before; initialized is set by the notification that must follow it.
	version     string
	initialized bool
}

func newWireConn() *wireConn { return &wireConn{requests: map[string]request{}} }

// readMessage notes a message of the client. The caller makes sure that there is one at a time.
func (w *wire) readMessage(c *wireConn, m *wireMessage) {
	id := string(m.ID)
	switch {
	case m.Method == "notifications/initialized":
		c.initialized = true
	case m.Method == "notifications/cancelled":
		w.readCancel(c, string(m.Params.RequestID))
	case m.isRequest():
		if before, used := c.requests[id]; used {
			w.report("C10", fmt.Sprintf("The request id %s is used twice in one session: for %s at %s, and again for %s. A late answer to the first is taken for one to the "+
				"second; count the ids up for as long as the session lives.", id, before.method, before.at, m.Method))
		}
		if c.version != "" && !c.initialized && m.Method != "ping" && m.Method != "initialize" {
			w.report("C10", fmt.Sprintf("The client asks for %s after initialize, and has not sent notifications/initialized: the server may refuse everything until then.", m.Method))
			c.initialized = true // said once
		}
		if m.Method == "initialize" {
			c.version = m.Params.Version
		}
		c.requests[id] = request{m.Method, m.Params.Arguments.Call, w.now()}
	}
}

// readCancel notes that the client cancels the request with an id.
func (w *wire) readCancel(c *wireConn, id string) {
	switch r, known := c.requests[id]; {
	case !known: // one that was given up before it was written; a wrong id leaves the server untold, which C9 sees
	case r.method == "initialize":
		w.report("C10", "The client cancels its initialize, which the protocol forbids; close the connection in place of it.")
	case r.call != "":
		w.cancelled(r.call)
	}
}

// watchStream returns the stream of a stdio server, whose lines are read while the client writes them.
func (w *wire) watchStream(stream io.ReadWriteCloser) io.ReadWriteCloser {
	return &watchedStream{ReadWriteCloser: stream, wire: w, conn: newWireConn()}
}

// watchedStream is the client's side of a stdio server.
type watchedStream struct {
	io.ReadWriteCloser
	wire *wire

	// mu guards what was written: conn, and the begin of a line whose end is still to come.
	mu   sync.Mutex
	conn *wireConn
	rest []byte
}

// Write implements io.Writer.
func (s *watchedStream) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.rest = append(s.rest, p...)
	for {
		line, rest, found := strings.Cut(string(s.rest), "\n")
		if !found {
			break
		}
		s.rest = []byte(rest)
		var m wireMessage
		if json.Unmarshal([]byte(line), &m) == nil {
			s.wire.readMessage(s.conn, &m)
		}
	}
	s.mu.Unlock()
	return s.ReadWriteCloser.Write(p)
}

// Ended reports whether the server has ended; Redial asks it.
func (s *watchedStream) Ended() bool {
	e, ok := s.ReadWriteCloser.(interface{ Ended() bool })
	return ok && e.Ended()
}
