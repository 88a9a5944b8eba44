package live

import (
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
)

// session is one connection over HTTP: streamable, of either era, or HTTP+SSE. It holds no socket but those of the
// exchanges that are under way. Every field is guarded by the seat's lock.
type session struct {
	web  *web
	conn int

	accepted bool
	id       string               // Mcp-Session-Id, empty in the modern era
	held     []message            // what came before the machine had accepted
	used     map[string]bool      // the ids of the requests so far
	greets   string               // the id of the initialize that is under way
	greeted  bool                 // initialize was answered
	answers  int                  // how many requests were answered
	notice   *exchange            // the notification that is being taken
	posts    map[string]*exchange // the requests that are under way, by id
	stream   *exchange            // what the client has opened for what is said unasked
	farewell *exchange            // the DELETE that waits
	closing  bool                 // the client has closed
	down     bool
	hung     bool // half-open: nothing is said any more
}

func newSession(w *web) *session {
	return &session{web: w, posts: map[string]*exchange{}, used: map[string]bool{}}
}

type message struct {
	x      *exchange
	body   []byte
	header map[string]string
}

// take gives the machine a message, once it has accepted the connection.
func (c *session) take(x *exchange, body []byte, header map[string]string) {
	m := x.asks
	if id := string(m.ID); m.Method != "" && id != "" {
		c.used[id] = true
		if c.web.kind == messages.HTTP {
			c.posts[id] = x
		}
		if m.Method == "initialize" {
			c.greets = id
		}
	}
	if !c.accepted {
		c.held = append(c.held, message{x, body, header})
		return
	}
	c.give(x, body, header)
}

// give lets the machine have a message. A notification, and every message over HTTP+SSE, is taken with 202 in the same
// turn unless the machine refuses it.
func (c *session) give(x *exchange, body []byte, header map[string]string) {
	only := c.web.kind == messages.SSE || x.asks.Method == "" || len(x.asks.ID) == 0
	if only {
		c.notice = x
	}
	c.web.seat.receive(c.conn, body, header)
	if only {
		c.notice = nil
		x.tell(status(http.StatusAccepted)) // a refusal has come first
	}
}

// perform implements link.
func (c *session) perform(a peer.Action) {
	switch a := a.(type) {
	case peer.Accept:
		c.accept(a)
	case peer.Reject:
		c.reject(a)
	case peer.Send:
		c.send(a)
	case peer.Raw:
		if c.stream != nil {
			c.stream.tell(directive{raw: a.Bytes, repeat: a.Repeat, chunk: a.Chunk, every: a.Every})
		}
	case peer.Status:
		x := c.posts[a.Reply]
		if a.Reply == "" || c.web.kind == messages.SSE && c.notice != nil {
			x = c.notice
		}
		delete(c.posts, a.Reply)
		delete(c.used, a.Reply) // it was not heard: the client may ask the same again
		if x != nil {
			x.tell(refusal(a.Code, a.RetryAfter, a.Header, a.Body))
		}
		if a.Code == http.StatusNotFound && c.id != "" {
			c.tellDown(messages.ClassSession, "the session is not known any more")
		}
	case peer.Cut:
		x := c.posts[a.Reply]
		if a.Reply == "" {
			x = c.stream
		}
		delete(c.posts, a.Reply)
		if x != nil {
			x.tell(directive{cut: true})
		}
	case peer.Exit:
		c.exit(a)
	}
}

// accept opens the connection: over HTTP+SSE by telling where messages go.
func (c *session) accept(a peer.Accept) {
	c.accepted, c.id = true, a.Session
	if a.Session != "" {
		c.web.sessions[a.Session] = c.conn
	}
	if c.web.kind == messages.SSE && c.stream != nil {
		c.stream.tell(directive{begin: true})
		c.stream.tell(directive{event: "endpoint", body: []byte(c.endpoint())})
	}
	held := c.held
	c.held = nil
	for _, m := range held {
		c.give(m.x, m.body, m.header)
	}
}

// reject refuses whoever waits for the connection.
func (c *session) reject(a peer.Reject) {
	for _, m := range c.held {
		m.x.tell(refusal(a.Code, a.RetryAfter, a.Header, []byte(a.Text)))
	}
	if c.stream != nil {
		c.stream.tell(refusal(a.Code, a.RetryAfter, a.Header, []byte(a.Text)))
	}
	c.held, c.down = nil, true
}

// send delivers a message on the stream that it belongs to.
func (c *session) send(a peer.Send) {
	d := directive{body: a.Body, chunk: a.Chunk, every: a.Every, cutAt: a.Cut, kind: a.Type, last: a.Reply != "" && !a.More}
	if c.web.kind == messages.SSE {
		d.last = false
		if c.stream != nil && !c.hung {
			c.stream.tell(d)
		}
		return
	}
	x := c.posts[a.Reply]
	if a.Reply == "" {
		x = c.stream
	}
	if x == nil || c.hung {
		return // nobody hears it
	}
	if d.last {
		delete(c.posts, a.Reply)
		// Every other answer is a stream, and so is one that something came before.
		c.answers++
		x.streams(c.answers%2 == 0 && a.Type == "")
		if a.Reply == c.greets && errorCode(a.Body) == 0 {
			c.greeted, d.session = true, c.id
		}
	} else {
		x.streams(true)
	}
	x.tell(d)
}

// exit ends the server's side. Over streamable HTTP the client may come back with what it knows, and the machine says what
// it gets.
func (c *session) exit(a peer.Exit) {
	if a.HalfOpen {
		c.hung = true
		return
	}
	class := messages.ClassNetwork
	if c.id != "" {
		class = messages.ClassSession // which is what the client is told when it comes back
	}
	c.tellDown(class, a.Text)
	d := directive{abort: true}
	if a.Reset {
		d = directive{reset: true}
	}
	for id, x := range c.posts {
		delete(c.posts, id)
		x.tell(d)
	}
	if c.stream != nil {
		c.stream.tell(d)
		c.stream = nil
	}
	if c.farewell != nil {
		c.farewell.tell(status(http.StatusOK))
		c.farewell = nil
	}
	if c.web.kind != messages.HTTP || c.closing {
		c.web.seat.releaseLocked(c.conn, c)
	}
}

// tellDown notes once that the server's side has ended, if the client did not ask for it.
func (c *session) tellDown(class messages.Class, text string) {
	if c.down || c.closing {
		return
	}
	c.down = true
	c.web.seat.noteLocked(history.Event{Kind: history.Down, Conn: c.conn, Class: class, Text: text})
}

// left is called when an exchange is over: it was answered, broken, or the client went away.
func (c *session) left(x *exchange) {
	s := c.web.seat
	s.mu.Lock()
	defer s.mu.Unlock()
	id := string(x.asks.ID)
	switch {
	case c.stream == x:
		c.stream = nil
		if c.web.kind == messages.SSE {
			c.forgetLocked() // the stream is the connection
		}
	case id != "" && c.posts[id] == x:
		delete(c.posts, id)
		reply := id
		if !c.accepted {
			reply = ""
		}
		s.tellLocked(func(now time.Duration) []peer.Action { return s.machine.Abandoned(now, c.conn, reply) })
	}
}

// forget is called when the client has closed the connection for good.
func (c *session) forget() {
	s := c.web.seat
	s.mu.Lock()
	defer s.mu.Unlock()
	c.forgetLocked()
}

func (c *session) forgetLocked() {
	s := c.web.seat
	if s.links[c.conn] != link(c) {
		return
	}
	if !c.closing {
		c.closing = true
		if !c.accepted {
			s.tellLocked(func(now time.Duration) []peer.Action { return s.machine.Abandoned(now, c.conn, "") })
		}
	}
	s.machine.Killed(s.now(), c.conn)
	s.releaseLocked(c.conn, c)
}

// over reports whether nothing of the connection is open.
func (c *session) over() bool { return len(c.posts) == 0 && c.stream == nil && c.farewell == nil }

// pids implements link.
func (c *session) pids() []int { return nil }

// cut implements link.
func (c *session) cut() {}
