package live

import (
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// httpSession is one connection over HTTP: streamable, of either era, or HTTP+SSE. It holds no socket but those of the
// exchanges that are under way. Every field is guarded by the seat's lock.
type httpSession struct {
	web  *webEndpoint
	conn int

	accepted       bool
	id             string                   // Mcp-Session-Id, empty in the modern era
	heldMessages   []heldMessage            // what came before the machine had accepted
	usedIDs        map[string]bool          // the ids of the requests so far
	initializeID   string                   // the id of the initialize that is under way
	initialized    bool                     // initialize was answered
	answerCount    int                      // how many requests were answered
	currentNotice  *httpExchange            // the notification that is being taken
	openPosts      map[string]*httpExchange // the requests that are under way, by id
	stream         *httpExchange            // what the client has opened for what is said unasked
	deleteExchange *httpExchange            // the DELETE that waits
	clientClosed   bool                     // the client has closed
	downRecorded   bool
	halfOpen       bool // half-open: nothing is said any more
}

func newHTTPSession(w *webEndpoint) *httpSession {
	return &httpSession{web: w, openPosts: map[string]*httpExchange{}, usedIDs: map[string]bool{}}
}

type heldMessage struct {
	x      *httpExchange
	body   []byte
	header map[string]string
}

// takeMessage gives the machine a message, once it has accepted the connection.
func (c *httpSession) takeMessage(x *httpExchange, body []byte, header map[string]string) {
	m := x.envelope
	if id := string(m.ID); m.Method != "" && id != "" {
		c.usedIDs[id] = true
		if c.web.kind == messages.HTTP {
			c.openPosts[id] = x
		}
		if m.Method == "initialize" {
			c.initializeID = id
		}
	}
	if !c.accepted {
		c.heldMessages = append(c.heldMessages, heldMessage{x, body, header})
		return
	}
	c.deliverMessage(x, body, header)
}

// deliverMessage lets the machine have a message. A notification, and every message over HTTP+SSE, is taken with 202 in the same
// turn unless the machine refuses it.
func (c *httpSession) deliverMessage(x *httpExchange, body []byte, header map[string]string) {
	acceptOnly := c.web.kind == messages.SSE || x.envelope.Method == "" || len(x.envelope.ID) == 0
	if acceptOnly {
		c.currentNotice = x
	}
	c.web.owner.receiveMessage(c.conn, body, header)
	if acceptOnly {
		c.currentNotice = nil
		x.addDirective(statusDirective(http.StatusAccepted)) // a refusal has come first
	}
}

// performAction implements link.
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
		delete(c.usedIDs, a.Reply) // it was not heard: the client may ask the same again
		if x != nil {
			x.addDirective(refusalDirective(a.Code, a.RetryAfter, a.Header, a.Body))
		}
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

// acceptConn opens the connection: over HTTP+SSE by telling where messages go.
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

// rejectConn refuses whoever waits for the connection.
func (c *httpSession) rejectConn(a peer.Reject) {
	for _, m := range c.heldMessages {
		m.x.addDirective(refusalDirective(a.Code, a.RetryAfter, a.Header, []byte(a.Text)))
	}
	if c.stream != nil {
		c.stream.addDirective(refusalDirective(a.Code, a.RetryAfter, a.Header, []byte(a.Text)))
	}
	c.heldMessages, c.downRecorded = nil, true
}

// sendMessage delivers a message on the stream that it belongs to.
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
	if x == nil || c.halfOpen {
		return // nobody hears it
	}
	if d.last {
		delete(c.openPosts, a.Reply)
		// Every other answer is a stream, and so is one that something came before.
		c.answerCount++
		x.useEventStream(c.answerCount%2 == 0 && a.Type == "")
		if a.Reply == c.initializeID && errorCode(a.Body) == 0 {
			c.initialized, d.session = true, c.id
		}
	} else {
		x.useEventStream(true)
	}
	x.addDirective(d)
}

// endServerSide ends the server's side. Over streamable HTTP the client may come back with what it knows, and the machine says what
// it gets.
func (c *httpSession) endServerSide(a peer.Exit) {
	if a.HalfOpen {
		c.halfOpen = true
		return
	}
	class := messages.ClassNetwork
	if c.id != "" {
		class = messages.ClassSession // which is what the client is told when it comes back
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

// recordDown notes once that the server's side has ended, if the client did not ask for it.
func (c *httpSession) recordDown(class messages.Class, text string) {
	if c.downRecorded || c.clientClosed {
		return
	}
	c.downRecorded = true
	c.web.owner.recordLocked(history.Event{Kind: history.Down, Conn: c.conn, Class: class, Text: text})
}

// handleExchangeEnd is called when an exchange is over: it was answered, broken, or the client went away.
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
		reply := id
		if !c.accepted {
			reply = ""
		}
		s.askMachineLocked(func(now time.Duration) []peer.Action { return s.machine.Abandoned(now, c.conn, reply) })
	}
}

// forgetConn is called when the client has closed the connection for good.
func (c *httpSession) forgetConn() {
	s := c.web.owner
	s.mu.Lock()
	defer s.mu.Unlock()
	c.forgetConnLocked()
}

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

// isGone reports whether nothing of the connection is open.
func (c *httpSession) isGone() bool {
	return len(c.openPosts) == 0 && c.stream == nil && c.deleteExchange == nil
}

// processIDs implements link.
func (c *httpSession) processIDs() []int { return nil }

// cutConn implements link.
func (c *httpSession) cutConn() {}
