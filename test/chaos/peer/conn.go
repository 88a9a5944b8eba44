package peer

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// conn is one connection of the server: the life of a process, a session, a socket.
type conn struct {
	id      int
	era     messages.Era
	session string
	// ready is when the server has started and answers.
	ready time.Duration

	// version is what was agreed on, empty before; initialized says that the client has said so (legacy era).
	version     string
	initialized bool
	// greeted says that the handshake was answered.
	greeted bool
	listens []*listen
	calls   []*call // those that wait, in order
	lists   int     // how often a list was begun

	// stopped, deaf and cut off are the faults that hold it up: it does nothing, it hears nothing, nothing gets through.
	stopped, deaf, cutOff, halfOpen int
	// late is what it would have done while it was stopped, unheard what came while it did not hear, unsaid what it said
	// while nothing got through.
	late, unheard []func()
	unsaid        []Action
}

// acts lets the server do something on the connection, now or when it is not stopped any more.
func (c *conn) acts(do func()) {
	if c.stopped > 0 {
		c.late = append(c.late, do)
		return
	}
	do()
}

// hears lets something that the client wrote arrive, now or when it can.
func (c *conn) hears(do func()) {
	if c.stopped > 0 || c.deaf > 0 || c.cutOff > 0 {
		c.unheard = append(c.unheard, do)
		return
	}
	do()
}

// over reports whether the connection has ended.
func (m *machine) over(c *conn) bool { return m.conns[c.id] != c }

// goOn does what was held up, as far as nothing else holds it up.
func (m *machine) goOn(c *conn) {
	if m.over(c) {
		return
	}
	if c.cutOff == 0 {
		unsaid := c.unsaid
		c.unsaid = nil
		m.do(unsaid...)
	}
	for c.stopped == 0 && len(c.late) > 0 && !m.over(c) {
		next := c.late[0]
		c.late = c.late[1:]
		next()
	}
	for c.stopped+c.deaf+c.cutOff == 0 && len(c.unheard) > 0 && !m.over(c) {
		next := c.unheard[0]
		c.unheard = c.unheard[1:]
		next()
	}
}

// say is what leaves the server on a connection.
func (m *machine) say(c *conn, a Action) {
	switch {
	case m.over(c) || c.halfOpen > 0:
	case c.cutOff > 0:
		c.unsaid = append(c.unsaid, a)
	default:
		m.do(a)
	}
}

// Open implements Machine.
func (m *machine) Open(now time.Duration, id int) []Action {
	m.turn(now)
	m.announce()
	m.open(id)
	return m.out
}

func (m *machine) open(id int) {
	for _, f := range m.faults {
		if f.hooks.open != nil && f.hooks.open(m, f, id) {
			return
		}
	}
	if m.now < m.down {
		m.do(Reject{Conn: id, Class: m.refusal(), Text: "the server is down"})
		return
	}
	m.accept(id, true)
}

// refusal is the class of a dial that finds nobody.
func (m *machine) refusal() messages.Class {
	if m.cfg.Server.Kind == messages.Stdio {
		return messages.ClassExited
	}
	return messages.ClassNetwork
}

// accept makes a connection. The modern era has no sessions: there a message may make one, without a dial (say).
func (m *machine) accept(id int, say bool) *conn {
	c := &conn{id: id, era: m.cfg.Server.Era, ready: m.now + m.about(m.cfg.Server.Start)}
	for _, f := range m.faults {
		if f.hooks.start != nil {
			f.hooks.start(m, f, c)
		}
	}
	if m.cfg.Server.Kind == messages.HTTP && c.era == messages.EraLegacy {
		m.sessions++
		c.session = fmt.Sprintf("%s-%d-%016x", m.cfg.Server.Name, m.sessions, m.rand.Uint64())
	}
	m.conns[id] = c
	if say {
		m.do(Accept{Conn: id, Session: c.session})
	}
	for _, f := range m.faults {
		if f.hooks.opened != nil && !m.over(c) {
			f.hooks.opened(m, f, c)
		}
	}
	return c
}

// exit ends a connection.
func (m *machine) exit(c *conn, e Exit) {
	if m.over(c) {
		return
	}
	e.Conn = c.id
	m.drop(c)
	m.do(e)
}

// drop forgets a connection and everything that waits on it.
func (m *machine) drop(c *conn) {
	delete(m.conns, c.id)
	for token, w := range m.waits {
		if w.conn == c {
			delete(m.waits, token)
		}
	}
}

// crash is an end that the client did not ask for: a process exits, a socket is reset.
func (m *machine) crash(c *conn, code int) {
	if m.cfg.Server.Kind == messages.Stdio {
		m.exit(c, Exit{Code: code})
		return
	}
	m.exit(c, Exit{Code: code, Reset: true})
}

// Closed implements Machine.
func (m *machine) Closed(now time.Duration, id int, signal bool) []Action {
	m.turn(now)
	c := m.conns[id]
	if c == nil {
		return nil
	}
	for _, f := range m.faults {
		if f.hooks.closed != nil && f.hooks.closed(m, f, c, signal) {
			return m.out
		}
	}
	leave := func() {
		e := Exit{After: m.about(time.Millisecond)}
		if signal && m.cfg.Server.Kind == messages.Stdio {
			e.Text = "TERM"
		}
		m.exit(c, e)
	}
	if signal {
		c.acts(leave) // a signal reaches who does not read, but not who is stopped
	} else {
		c.hears(leave)
	}
	return m.out
}

// Killed implements Machine.
func (m *machine) Killed(now time.Duration, id int) {
	m.turn(now)
	if c := m.conns[id]; c != nil {
		m.drop(c)
	}
}

// Abandoned implements Machine.
func (m *machine) Abandoned(now time.Duration, id int, reply string) []Action {
	m.turn(now)
	c := m.conns[id]
	switch {
	case reply == "":
		m.undial(id)
	case c != nil && c.era == messages.EraModern:
		// 2026-07-28: "on Streamable HTTP, closing the SSE response stream is itself the cancellation signal".
		c.hears(func() { m.cancel(c, reply) })
	}
	return m.out
}

// undial forgets a dial that hung.
func (m *machine) undial(id int) {
	for i, d := range m.dials {
		if d == id {
			m.dials = append(m.dials[:i:i], m.dials[i+1:]...)
			return
		}
	}
}
