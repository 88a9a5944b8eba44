package peer

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// conn is one connection of the server: the life of a process, a session or a socket.
type conn struct {
	// id is the performer's number of the connection; the performer may reuse it after the connection has ended.
	id      int
	era     messages.Era
	session string
	// readyAt is the time from which the server answers; earlier requests wait for it (see scheduleAnswer).
	readyAt time.Duration

	// version is the agreed protocol version, empty before the handshake. initialized is set by notifications/initialized
	// (legacy era).
	version     string
	initialized bool
	// handshakeDone is set once the server has sent the result of the handshake.
	handshakeDone bool
	streams       []*subscriptionStream
	// waitingCalls are the calls that have neither run nor been cancelled, in the order of their arrival.
	waitingCalls []*call
	// requestTokens maps the id of a request that is no call to the token of its scheduled answer, so that a cancellation finds
	// it.
	requestTokens map[string]int
	// runningTasks are the tasks in the order of their begins, ended ones included, because a client may still ask for their
	// results. taskCandidates counts the calls of which the server itself decides whether they become tasks (modern era).
	runningTasks   []*task
	taskCandidates int
	// taskAskCount counts the tasks of a server with offers: every third asks for input.
	taskAskCount int
	// capabilities are the client's capabilities from initialize. askCount counts the requests at which the server could have
	// asked a question, so that it asks at every third. openQuestions maps the id of a question to the call that waits for its
	// answer. subscribed is set while the client subscribes to the resource (legacy era).
	capabilities  []string
	askCount      int
	openQuestions map[string]pendingQuestion
	// withdrawn says when each question was taken back that was.
	withdrawn  map[string]time.Duration
	subscribed bool
	// logLevel is the least severe level of log messages that the client has asked for (legacy era).
	logLevel string
	// listingCount counts the listings that the client began, and listRev is the revision of the list in which the last one
	// began. secondPageAt is the index of the tool to which the empty cursor leads in that listing (fault empty-cursor); 0
	// means that the empty cursor leads behind the last tool.
	listingCount, listRev, secondPageAt int
	// listedRev is the state of the list that was last given as a whole, at listedAt.
	listedRev int
	listedAt  time.Duration
	// sessionLost is set when the server has forgotten the session, and lostFault is the fault that made it forget; nil if the
	// server never knew the session, or if the fault records its effect elsewhere.
	sessionLost bool
	lostFault   *fault

	// Each list holds the faults that hold the connection up in one way: the server does nothing (stoppedBy), reads nothing
	// (notReadingBy), exchanges no bytes with the client (cutBy), or has its output withheld (mutedBy). Several faults may do
	// the same at once; the connection goes on when the list is empty.
	stoppedBy, notReadingBy, cutBy, mutedBy []*fault
	// heldActions waits for the end of stoppedBy, heldInput for the end of stoppedBy, notReadingBy and cutBy, heldOutput for
	// the end of cutBy and mutedBy. flushHeld empties them in order.
	heldActions, heldInput []func()
	heldOutput             []Action
	// owesNotice is set when list-storm changed the list without a notification because the connection was held up; flushHeld
	// sends one instead of many.
	owesNotice bool
}

// isEnded reports whether the machine has forgotten the connection. It compares the pointer, not the number, because a new
// connection may bear the same number.
func (m *machine) isEnded(c *conn) bool { return m.conns[c.id] != c }

// isUnblocked reports whether nothing holds a connection up.
func (c *conn) isUnblocked() bool {
	return len(c.stoppedBy)+len(c.notReadingBy)+len(c.cutBy)+len(c.mutedBy) == 0
}

// runOrHold lets the server do something on a connection at once, or holds it until no fault stops the server.
func (m *machine) runOrHold(c *conn, do func()) {
	if len(c.stoppedBy) > 0 {
		c.heldActions = append(c.heldActions, do)
		return
	}
	do()
}

// receiveOrHold handles something that the client sent at once, or holds it until the server reads it. A fault that keeps the
// message from the server records its effect; a stop has recorded it already when it began.
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

// sendOrHold returns an action to the performer, or holds it until no fault keeps the server's output back. It drops the action
// if the connection has ended. A Note records no effect of the fault because the client would not have seen it anyway.
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

// flushHeld performs what was held, as far as no remaining fault holds it. Each held function may end the connection or hold it
// up again, so that the loops ask anew before every step. Output goes before input, because the server wrote it before.
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

// releaseFault removes a fault that holds connections up from all of them, and performs what only this fault held.
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

// currentEra returns the era that the server speaks now. Each active era-flip turns it over once, so that two of them cancel
// out.
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

// Open implements [Machine].
func (m *machine) Open(now time.Duration, id int) []Action {
	m.beginTurn(now)
	m.announceTools()
	m.openConn(id)
	return m.out
}

// openConn answers a dial: the first fault that handles dials decides, then the time for which a crash keeps the server down.
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

// refuseDial answers a dial while the server is down: over a network the connection is refused, a process starts and exits at
// once.
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

// acceptConn makes a connection and accepts its dial. Faults may change the connection before Accept (onConnCreated) and act on
// it after (onConnOpened); one of the latter may end it at once, so the loop asks before each.
func (m *machine) acceptConn(id int) *conn {
	c := &conn{
		id: id, era: m.currentEra(), readyAt: m.now + m.drawAround(m.cfg.Server.Start), listRev: m.list.rev, requestTokens: make(map[string]int),
	}
	// These hooks run before the session's id is drawn, because slow-start draws too and must do so at a fixed place.
	for _, f := range m.activeFaults {
		if f.hooks.onConnCreated != nil {
			f.hooks.onConnCreated(m, f, c)
		}
	}
	if m.cfg.Server.Kind == messages.HTTP && c.era == messages.EraLegacy {
		m.sessionCount++
		c.session = fmt.Sprintf("%s-%d-%016x", m.cfg.Server.Name, m.sessionCount, m.rand.Uint64())
	}
	// A dial that reuses a number replaces a connection whose end the machine has not seen; its scheduled answers go with it.
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

// Abandoned implements [Machine].
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

// holdDial keeps a dial unanswered until retryDials, or until the client abandons it.
func (m *machine) holdDial(id int) { m.pendingDials = append(m.pendingDials, id) }

// retryDials answers the dials that hang, unless another fault holds them again. openConn may append to pendingDials, so the
// list is taken first.
func (m *machine) retryDials() {
	dials := m.pendingDials
	m.pendingDials = nil
	for _, id := range dials {
		m.openConn(id)
	}
}
