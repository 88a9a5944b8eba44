package performer

import (
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// httpSession is one connection over HTTP: streamable HTTP of either era, or HTTP+SSE. It holds no socket but those of its open
// exchanges. The server's lock guards every field.
type httpSession struct {
	web  *webEndpoint
	conn int

	// accepted is set by the machine's Accept.
	accepted bool
	// id is the Mcp-Session-Id, empty in the modern era.
	id string
	// heldMessages are the messages that came before the machine had accepted the connection.
	heldMessages []heldMessage
	// usedIDs are the ids of the requests so far; beginsConn looks for them.
	usedIDs map[string]bool
	// initializeID is the id of the last initialize. refused is set when it was answered with an error: another one then belongs to the
	// same connection, perhaps with another version.
	initializeID string
	refused      bool
	// answerCount counts the answers, because every second one is sent as an event stream.
	answerCount int
	// currentNotice is the exchange of the message that the machine is handling, if 202 will answer it.
	currentNotice *httpExchange
	// openPosts holds the exchanges of the requests under way, by id.
	openPosts map[string]*httpExchange
	// stream is the GET stream for messages that belong to no request (over HTTP+SSE: for all), nil if the client has none.
	stream *httpExchange
	// deleteExchange is the DELETE that waits for the machine, nil without one.
	deleteExchange *httpExchange
	// clientClosed is set when the client has closed the connection; its end is then no failure of the server.
	clientClosed bool
	// downRecorded keeps recordDown from recording the end twice.
	downRecorded bool
	// halfOpen is set when the server sends nothing more while its sockets stay open.
	halfOpen bool
}

// newHTTPSession makes a connection without a number, which addConnLocked gives it.
func newHTTPSession(w *webEndpoint) *httpSession {
	return &httpSession{web: w, openPosts: map[string]*httpExchange{}, usedIDs: map[string]bool{}}
}

// heldMessage is a message that waits for the machine's Accept.
type heldMessage struct {
	x      *httpExchange
	body   []byte
	header map[string]string
}

// takeMessage notes a message and gives it to the machine, at once or when the machine has accepted the connection.
func (c *httpSession) takeMessage(x *httpExchange, body []byte, header map[string]string) {
	m := x.envelope
	if id := string(m.ID); m.Method != "" && id != "" {
		c.usedIDs[id] = true
		if c.web.kind == messages.HTTP {
			c.openPosts[id] = x
		}
		if m.Method == "initialize" {
			c.initializeID, c.refused = id, false
		}
	}
	if !c.accepted {
		c.heldMessages = append(c.heldMessages, heldMessage{x, body, header})
		return
	}
	c.deliverMessage(x, body, header)
}

// deliverMessage gives a message to the machine. Notifications, responses, and every message over HTTP+SSE are answered with
// 202 in the same turn, unless the machine refuses them.
func (c *httpSession) deliverMessage(x *httpExchange, body []byte, header map[string]string) {
	acceptOnly := c.web.kind == messages.SSE || x.envelope.Method == "" || len(x.envelope.ID) == 0
	if acceptOnly {
		c.currentNotice = x
	}
	c.web.owner.receiveMessage(c.conn, body, header)
	if acceptOnly {
		c.currentNotice = nil
		// If the machine has refused the message, its status is queued before and ends the exchange.
		x.addDirective(statusDirective(http.StatusAccepted))
	}
}

// performAction implements serverConn.
func (c *httpSession) performAction(a peer.Action) {
	switch a := a.(type) {
	case peer.Accept:
		c.acceptConn(a)
	case peer.Reject:
		c.rejectConn(a)
	case peer.Send:
		c.sendMessage(a)
	case peer.Raw:
		if c.stream != nil {
			c.stream.addDirective(directive{raw: a.Bytes, repeat: a.Repeat, chunk: a.Chunk, every: a.Every})
		}
	case peer.Status:
		x := c.openPosts[a.Reply]
		if a.Reply == "" || c.web.kind == messages.SSE && c.currentNotice != nil {
			x = c.currentNotice
		}
		delete(c.openPosts, a.Reply)
		// The server has not read the refused request, so the client may send it again with the same id.
		delete(c.usedIDs, a.Reply)
		if x != nil {
			x.addDirective(refusalDirective(a.Code, a.RetryAfter, a.Header, a.Body))
		}
		// This 404 is how the client learns that its session is lost, so that the end is recorded here and not at the fault.
		if a.Code == http.StatusNotFound && c.id != "" {
			c.recordDown(messages.ClassSession, "the session is not known any more")
		}
	case peer.Cut:
		x := c.openPosts[a.Reply]
		if a.Reply == "" {
			x = c.stream
		}
		delete(c.openPosts, a.Reply)
		if x != nil {
			x.addDirective(directive{cut: true})
		}
	case peer.Exit:
		c.endServerSide(a)
	}
}

// acceptConn opens the connection, and lets the machine have the messages that waited. Over HTTP+SSE the first event says where
// the client posts its messages.
func (c *httpSession) acceptConn(a peer.Accept) {
	c.accepted, c.id = true, a.Session
	if a.Session != "" {
		c.web.sessions[a.Session] = c.conn
	}
	if c.web.kind == messages.SSE && c.stream != nil {
		c.stream.addDirective(directive{begin: true})
		c.stream.addDirective(directive{event: "endpoint", body: []byte(c.messagePath())})
	}
	waiting := c.heldMessages
	c.heldMessages = nil
	for _, m := range waiting {
		c.deliverMessage(m.x, m.body, m.header)
	}
}

// rejectConn refuses the exchanges that wait for the connection.
func (c *httpSession) rejectConn(a peer.Reject) {
	for _, m := range c.heldMessages {
		m.x.addDirective(refusalDirective(a.Code, a.RetryAfter, a.Header, []byte(a.Text)))
	}
	if c.stream != nil {
		c.stream.addDirective(refusalDirective(a.Code, a.RetryAfter, a.Header, []byte(a.Text)))
	}
	c.heldMessages, c.downRecorded = nil, true
}

// sendMessage sends a message on the exchange that it belongs to. Every second answer is an event stream, and so is an answer
// after other messages, because JSON has room for one message only.
func (c *httpSession) sendMessage(a peer.Send) {
	d := directive{body: a.Body, chunk: a.Chunk, every: a.Every, cutAt: a.Cut, kind: a.Type, last: a.Reply != "" && !a.More}
	if c.web.kind == messages.SSE {
		d.last = false
		if c.stream != nil && !c.halfOpen {
			c.stream.addDirective(d)
		}
		return
	}
	x := c.openPosts[a.Reply]
	if a.Reply == "" {
		x = c.stream
	}
	greets := d.last && a.Reply == c.initializeID
	c.refused = c.refused || greets && errorCode(a.Body) != 0
	if x == nil || c.halfOpen {
		// The client has no stream for the message, or the server is silent.
		return
	}
	if d.last {
		delete(c.openPosts, a.Reply)
		// useEventStream does nothing once the head is written; a fault that sets the content type wants a plain body.
		c.answerCount++
		x.useEventStream(c.answerCount%2 == 0 && a.Type == "")
		if greets && !c.refused {
			d.session = c.id
		}
	} else {
		x.useEventStream(true)
	}
	x.addDirective(d)
}

// endServerSide ends the server's side: every exchange breaks. Over streamable HTTP the connection stays listed until the
// client ends it, because the client may come back with its session, and the machine then answers.
func (c *httpSession) endServerSide(a peer.Exit) {
	if a.HalfOpen {
		c.halfOpen = true
		return
	}
	c.halfOpen = false // what comes from now on belongs to new sockets
	class := messages.ClassNetwork
	if c.id != "" {
		// The client meets a lost session when it comes back, and reports this class.
		class = messages.ClassSession
	}
	c.recordDown(class, a.Text)
	d := directive{abort: true}
	if a.Reset {
		d = directive{reset: true}
	}
	for id, x := range c.openPosts {
		delete(c.openPosts, id)
		x.addDirective(d)
	}
	if c.stream != nil {
		c.stream.addDirective(d)
		c.stream = nil
	}
	if c.deleteExchange != nil {
		c.deleteExchange.addDirective(statusDirective(http.StatusOK))
		c.deleteExchange = nil
	}
	if c.web.kind != messages.HTTP || c.clientClosed {
		c.web.owner.releaseConnLocked(c.conn, c)
	}
}

// recordDown records once that the server's side has ended, unless the client ended it.
func (c *httpSession) recordDown(class messages.Class, text string) {
	if c.downRecorded || c.clientClosed {
		return
	}
	c.downRecorded = true
	c.web.owner.recordLocked(history.Event{Kind: history.Down, Conn: c.conn, Class: class, Text: text})
}

// handleExchangeEnd is called when an exchange is over. If the machine has not ended it, the client has gone away: over
// HTTP+SSE that ends the connection, otherwise it abandons the request.
func (c *httpSession) handleExchangeEnd(x *httpExchange) {
	s := c.web.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	id := string(x.envelope.ID)
	switch {
	case c.stream == x:
		c.stream = nil
		if c.web.kind == messages.SSE {
			c.forgetConnLocked() // the stream is the connection
		}
	case id != "" && c.openPosts[id] == x:
		delete(c.openPosts, id)
		// Before the acceptance there is no request that could be cancelled: the whole dial is abandoned.
		reply := id
		if !c.accepted {
			reply = ""
		}
		s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Abandoned(now, c.conn, reply) })
	}
}

// forgetConn releases the connection after the client has closed it for good.
func (c *httpSession) forgetConn() {
	s := c.web.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	c.forgetConnLocked()
}

// forgetConnLocked is forgetConn for a caller that holds the server's lock. A connection that the machine has not accepted
// counts as a dial that was given up.
func (c *httpSession) forgetConnLocked() {
	s := c.web.owner
	if s.conns[c.conn] != serverConn(c) {
		return
	}
	if !c.clientClosed {
		c.clientClosed = true
		if !c.accepted {
			s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Abandoned(now, c.conn, "") })
		}
	}
	s.machine.Killed(s.now(), c.conn)
	s.releaseConnLocked(c.conn, c)
}

// isGone reports whether the connection has no open exchange. releaseEndedLocked calls it.
func (c *httpSession) isGone() bool {
	return len(c.openPosts) == 0 && c.stream == nil && c.deleteExchange == nil
}

// processIDs implements serverConn.
func (c *httpSession) processIDs() []int { return nil }

// cutConn implements serverConn. The endpoint's close breaks the sockets.
func (c *httpSession) cutConn() {}
