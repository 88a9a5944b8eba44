package peer

import (
	"fmt"
	"slices"
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
	calls   []*call        // those that wait, in order
	asked   map[string]int // the waits of other requests, by id
	// running are the tasks, in order; tasks counts the calls that could have been one.
	running []*task
	tasks   int
	// can are the capabilities that the client has said, asks counts the calls in which it could be asked something, questions are
	// the calls that wait for an answer. subscribed says that it wants to know when the resource changes.
	can        []string
	asks       int
	questions  map[string]waiting
	subscribed bool
	// lists counts the listings that were begun, rev is the state of the list in which the last one was. second is the place of the
	// tool to which the empty cursor leads in it, 0 if that leads behind the last one.
	lists, rev, second int
	// lost says that the server has forgotten the session, lostBy through which fault; nil if it was never known.
	lost   bool
	lostBy *fault

	// These hold it up: it does nothing, it hears nothing, nothing gets through, it says nothing.
	stoppedBy, deafBy, cutBy, mutedBy []*fault
	// late is what it would have done while it was stopped, unheard what came while it did not hear, unsaid what it said
	// while nothing got out.
	late, unheard []func()
	unsaid        []Action
	// owes says that the client has not been told of the last change.
	owes bool
}

// over reports whether a connection has ended.
func (m *machine) over(c *conn) bool { return m.conns[c.id] != c }

// free reports whether nothing holds a connection up.
func (c *conn) free() bool {
	return len(c.stoppedBy)+len(c.deafBy)+len(c.cutBy)+len(c.mutedBy) == 0
}

// acts lets the server do something on a connection, now or when it is not stopped any more.
func (m *machine) acts(c *conn, do func()) {
	if len(c.stoppedBy) > 0 {
		c.late = append(c.late, do)
		return
	}
	do()
}

// hears lets something that the client did arrive, now or when it can.
func (m *machine) hears(c *conn, do func()) {
	switch {
	case len(c.stoppedBy) > 0:
	case len(c.deafBy) > 0:
		c.deafBy[0].fired(m, c.id)
	case len(c.cutBy) > 0:
		c.cutBy[0].fired(m, c.id)
	default:
		do()
		return
	}
	c.unheard = append(c.unheard, do)
}

// say is what leaves the server on a connection, now or when something can get out.
func (m *machine) say(c *conn, a Action) {
	if m.over(c) {
		return
	}
	if len(c.cutBy)+len(c.mutedBy) == 0 {
		m.do(a)
		return
	}
	if _, note := a.(Note); !note && len(c.cutBy) > 0 {
		c.cutBy[0].fired(m, c.id)
	}
	c.unsaid = append(c.unsaid, a)
}

// goOn does what was held up, as far as nothing else holds it up.
func (m *machine) goOn(c *conn) {
	if !m.over(c) && len(c.cutBy)+len(c.mutedBy) == 0 {
		m.do(c.unsaid...)
		c.unsaid = nil
	}
	for !m.over(c) && len(c.stoppedBy) == 0 && len(c.late) > 0 {
		next := c.late[0]
		c.late = c.late[1:]
		next()
	}
	for !m.over(c) && len(c.stoppedBy)+len(c.deafBy)+len(c.cutBy) == 0 && len(c.unheard) > 0 {
		next := c.unheard[0]
		c.unheard = c.unheard[1:]
		next()
	}
	if !m.over(c) && c.owes && c.free() {
		c.owes = false
		m.tellChangedOn(c)
	}
}

// release takes a fault that holds connections up from them.
func (m *machine) release(f *fault) {
	mine := func(o *fault) bool { return o == f }
	for _, c := range m.connections() {
		c.stoppedBy = slices.DeleteFunc(c.stoppedBy, mine)
		c.deafBy = slices.DeleteFunc(c.deafBy, mine)
		c.cutBy = slices.DeleteFunc(c.cutBy, mine)
		c.mutedBy = slices.DeleteFunc(c.mutedBy, mine)
		m.goOn(c)
	}
}

// era is what the server speaks now.
func (m *machine) era() messages.Era {
	era := m.cfg.Server.Era
	for range m.flips {
		if era == messages.EraModern {
			era = messages.EraLegacy
		} else {
			era = messages.EraModern
		}
	}
	return era
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
		m.downBy.fired(m, id)
		m.refuseOpening(id)
		return
	}
	m.accept(id)
}

// refuseOpening is what a dial finds while the server is down: nobody listens, or the process ends as soon as it is started.
func (m *machine) refuseOpening(id int) {
	if m.remote() {
		m.do(Reject{Conn: id, Class: messages.ClassNetwork, Text: "connection refused"})
		return
	}
	m.do(Accept{Conn: id}, Exit{Conn: id, Code: 1})
}

// remote reports whether there is a network between the client and the server.
func (m *machine) remote() bool {
	switch m.cfg.Server.Kind {
	case messages.Stdio, messages.SDK:
		return false
	default:
		return true
	}
}

// accept makes a connection.
func (m *machine) accept(id int) *conn {
	c := &conn{
		id: id, era: m.era(), ready: m.now + m.about(m.cfg.Server.Start), rev: m.list.rev, asked: make(map[string]int),
	}
	for _, f := range m.faults {
		if f.hooks.start != nil {
			f.hooks.start(m, f, c)
		}
	}
	if m.cfg.Server.Kind == messages.HTTP && c.era == messages.EraLegacy {
		m.sessions++
		c.session = fmt.Sprintf("%s-%d-%016x", m.cfg.Server.Name, m.sessions, m.rand.Uint64())
	}
	if old := m.conns[id]; old != nil {
		m.drop(old)
	}
	m.conns[id] = c
	m.do(Accept{Conn: id, Session: c.session})
	for _, f := range slices.Clone(m.faults) {
		if f.hooks.opened != nil && !m.over(c) {
			f.hooks.opened(m, f, c)
		}
	}
	return c
}

// Abandoned implements Machine.
func (m *machine) Abandoned(now time.Duration, id int, reply string) []Action {
	m.turn(now)
	c := m.conns[id]
	switch {
	case reply == "":
		m.dials = slices.DeleteFunc(m.dials, func(d int) bool { return d == id })
	case c != nil && c.era == messages.EraModern:
		// 2026-07-28: "on Streamable HTTP, closing the SSE response stream is itself the cancellation signal".
		m.hears(c, func() { m.cancel(c, reply) })
	}
	return m.out
}

// hang lets a dial wait.
func (m *machine) hang(id int) { m.dials = append(m.dials, id) }

// dialAgain lets the dials that hang arrive, unless something else holds them up.
func (m *machine) dialAgain() {
	dials := m.dials
	m.dials = nil
	for _, id := range dials {
		m.open(id)
	}
}
