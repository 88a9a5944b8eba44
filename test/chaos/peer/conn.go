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
	// readyAt is when the server has started and answers.
	readyAt time.Duration

	// version is what was agreed on, empty before; initialized says that the client has said so (legacy era).
	version     string
	initialized bool
	// handshakeDone says that the handshake was answered.
	handshakeDone bool
	streams       []*subscriptionStream
	waitingCalls  []*call        // those that wait, in order
	requestTokens map[string]int // the waits of other requests, by id
	// runningTasks are the tasks, in order; tasks counts the calls that could have been one.
	runningTasks   []*task
	taskCandidates int
	// capabilities are the capabilities that the client has said, asks counts the calls in which it could be asked something, questions are
	// the calls that wait for an answer. subscribed says that it wants to know when the resource changes.
	capabilities  []string
	askCount      int
	openQuestions map[string]pendingQuestion
	subscribed    bool
	// listingCount counts the listings that were begun, rev is the state of the list in which the last one was. second is the place of the
	// tool to which the empty cursor leads in it, 0 if that leads behind the last one.
	listingCount, listRev, secondPageAt int
	// sessionLost says that the server has forgotten the session, lostFault through which fault; nil if it was never known.
	sessionLost bool
	lostFault   *fault

	// These hold it up: it does nothing, it hears nothing, nothing gets through, it says nothing.
	stoppedBy, notReadingBy, cutBy, mutedBy []*fault
	// heldActions is what it would have done while it was stopped, unheard what came while it did not hear, unsaid what it said
	// while nothing got out.
	heldActions, heldInput []func()
	heldOutput             []Action
	// owesNotice says that the client has not been told of the last change.
	owesNotice bool
}

// isEnded reports whether a connection has ended.
func (m *machine) isEnded(c *conn) bool { return m.conns[c.id] != c }

// isUnblocked reports whether nothing holds a connection up.
func (c *conn) isUnblocked() bool {
	return len(c.stoppedBy)+len(c.notReadingBy)+len(c.cutBy)+len(c.mutedBy) == 0
}

// runOrHold lets the server do something on a connection, now or when it is not stopped any more.
func (m *machine) runOrHold(c *conn, do func()) {
	if len(c.stoppedBy) > 0 {
		c.heldActions = append(c.heldActions, do)
		return
	}
	do()
}

// receiveOrHold lets something that the client did arrive, now or when it can.
func (m *machine) receiveOrHold(c *conn, do func()) {
	switch {
	case len(c.stoppedBy) > 0:
	case len(c.notReadingBy) > 0:
		c.notReadingBy[0].recordFired(m, c.id)
	case len(c.cutBy) > 0:
		c.cutBy[0].recordFired(m, c.id)
	default:
		do()
		return
	}
	c.heldInput = append(c.heldInput, do)
}

// sendOrHold is what leaves the server on a connection, now or when something can get out.
func (m *machine) sendOrHold(c *conn, a Action) {
	if m.isEnded(c) {
		return
	}
	if len(c.cutBy)+len(c.mutedBy) == 0 {
		m.addActions(a)
		return
	}
	if _, note := a.(Note); !note && len(c.cutBy) > 0 {
		c.cutBy[0].recordFired(m, c.id)
	}
	c.heldOutput = append(c.heldOutput, a)
}

// flushHeld does what was held up, as far as nothing else holds it up.
func (m *machine) flushHeld(c *conn) {
	if !m.isEnded(c) && len(c.cutBy)+len(c.mutedBy) == 0 {
		m.addActions(c.heldOutput...)
		c.heldOutput = nil
	}
	for !m.isEnded(c) && len(c.stoppedBy) == 0 && len(c.heldActions) > 0 {
		next := c.heldActions[0]
		c.heldActions = c.heldActions[1:]
		next()
	}
	for !m.isEnded(c) && len(c.stoppedBy)+len(c.notReadingBy)+len(c.cutBy) == 0 && len(c.heldInput) > 0 {
		next := c.heldInput[0]
		c.heldInput = c.heldInput[1:]
		next()
	}
	if !m.isEnded(c) && c.owesNotice && c.isUnblocked() {
		c.owesNotice = false
		m.notifyConnChanged(c)
	}
}

// releaseFault takes a fault that holds connections up from them.
func (m *machine) releaseFault(f *fault) {
	mine := func(o *fault) bool { return o == f }
	for _, c := range m.sortedConns() {
		c.stoppedBy = slices.DeleteFunc(c.stoppedBy, mine)
		c.notReadingBy = slices.DeleteFunc(c.notReadingBy, mine)
		c.cutBy = slices.DeleteFunc(c.cutBy, mine)
		c.mutedBy = slices.DeleteFunc(c.mutedBy, mine)
		m.flushHeld(c)
	}
}

// currentEra is what the server speaks now.
func (m *machine) currentEra() messages.Era {
	era := m.cfg.Server.Era
	for range m.eraFlips {
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
	m.beginTurn(now)
	m.announceTools()
	m.openConn(id)
	return m.out
}

func (m *machine) openConn(id int) {
	for _, f := range m.activeFaults {
		if f.hooks.onDial != nil && f.hooks.onDial(m, f, id) {
			return
		}
	}
	if m.now < m.downUntil {
		m.downFault.recordFired(m, id)
		m.refuseDial(id)
		return
	}
	m.acceptConn(id)
}

// refuseDial is what a dial finds while the server is down: nobody listens, or the process ends as soon as it is started.
func (m *machine) refuseDial(id int) {
	if m.isRemote() {
		m.addActions(Reject{Conn: id, Class: messages.ClassNetwork, Text: "connection refused"})
		return
	}
	m.addActions(Accept{Conn: id}, Exit{Conn: id, Code: 1})
}

// isRemote reports whether there is a network between the client and the server.
func (m *machine) isRemote() bool {
	switch m.cfg.Server.Kind {
	case messages.Stdio, messages.SDK:
		return false
	default:
		return true
	}
}

// acceptConn makes a connection.
func (m *machine) acceptConn(id int) *conn {
	c := &conn{
		id: id, era: m.currentEra(), readyAt: m.now + m.drawAround(m.cfg.Server.Start), listRev: m.list.rev, requestTokens: make(map[string]int),
	}
	for _, f := range m.activeFaults {
		if f.hooks.onConnCreated != nil {
			f.hooks.onConnCreated(m, f, c)
		}
	}
	if m.cfg.Server.Kind == messages.HTTP && c.era == messages.EraLegacy {
		m.sessionCount++
		c.session = fmt.Sprintf("%s-%d-%016x", m.cfg.Server.Name, m.sessionCount, m.rand.Uint64())
	}
	if old := m.conns[id]; old != nil {
		m.forgetConn(old)
	}
	m.conns[id] = c
	m.addActions(Accept{Conn: id, Session: c.session})
	for _, f := range slices.Clone(m.activeFaults) {
		if f.hooks.onConnOpened != nil && !m.isEnded(c) {
			f.hooks.onConnOpened(m, f, c)
		}
	}
	return c
}

// Abandoned implements Machine.
func (m *machine) Abandoned(now time.Duration, id int, reply string) []Action {
	m.beginTurn(now)
	c := m.conns[id]
	switch {
	case reply == "":
		m.pendingDials = slices.DeleteFunc(m.pendingDials, func(d int) bool { return d == id })
	case c != nil && c.era == messages.EraModern:
		// 2026-07-28: "on Streamable HTTP, closing the SSE response stream is itself the cancellation signal".
		m.receiveOrHold(c, func() { m.cancelRequest(c, reply) })
	}
	return m.out
}

// holdDial lets a dial wait.
func (m *machine) holdDial(id int) { m.pendingDials = append(m.pendingDials, id) }

// retryDials lets the dials that hang arrive, unless something else holds them up.
func (m *machine) retryDials() {
	dials := m.pendingDials
	m.pendingDials = nil
	for _, id := range dials {
		m.openConn(id)
	}
}
