package peer

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// endConn ends a connection. While a fault keeps every byte from the client, the client cannot see the end: the connection
// stays half-open until the fault ends and resetDeadConns resets it.
func (m *machine) endConn(c *conn, e Exit) {
	if m.isEnded(c) {
		return
	}
	e.Conn = c.id
	m.forgetConn(c)
	if len(c.cutBy) > 0 {
		m.deadConns[c.id] = c.cutBy[0]
		e = Exit{Conn: c.id, After: e.After, HalfOpen: true}
	}
	m.addActions(e)
}

// crashConn ends a connection that the client did not close: a process exits with code, a socket is reset.
func (m *machine) crashConn(c *conn, code int) { m.endConn(c, Exit{Code: code, Reset: m.isRemote()}) }

// crashAll crashes every connection and records the effect of the fault on each.
func (m *machine) crashAll(f *fault, code int) {
	for _, c := range m.sortedConns() {
		f.recordFired(m, c.id)
		m.crashConn(c, code)
	}
}

// forgetConn forgets a connection and everything that is scheduled on it.
func (m *machine) forgetConn(c *conn) {
	delete(m.conns, c.id)
	maps.DeleteFunc(m.scheduled, func(_ int, w scheduledAction) bool { return w.conn == c })
}

// resetDeadConns resets the connections that a fault has left without a server, so that their clients notice.
func (m *machine) resetDeadConns(f *fault) {
	for _, id := range slices.Sorted(maps.Keys(m.deadConns)) {
		if m.deadConns[id] == f {
			delete(m.deadConns, id)
			m.addActions(Exit{Conn: id, Reset: true})
		}
	}
}

// Closed implements [Machine].
func (m *machine) Closed(now time.Duration, id int, signal bool) []Action {
	m.beginTurn(now)
	// No server is left to answer, and the client sends nothing more.
	delete(m.deadConns, id)
	c := m.conns[id]
	if c == nil {
		return nil
	}
	leave := func() {
		for _, f := range m.activeFaults {
			if f.hooks.onClosed != nil && f.hooks.onClosed(m, f, c, signal) {
				return
			}
		}
		e := Exit{After: m.drawAround(time.Millisecond)}
		// A stdio server that has no handler dies of the signal, and its exit status says so.
		if signal && m.cfg.Server.Kind == messages.Stdio {
			e.Text = "TERM"
		}
		m.endConn(c, e)
	}
	if signal {
		// A signal reaches a process that does not read, but not one that is stopped.
		m.runOrHold(c, leave)
	} else {
		m.receiveOrHold(c, leave)
	}
	return m.out
}

// Killed implements [Machine].
func (m *machine) Killed(now time.Duration, id int) {
	m.beginTurn(now)
	delete(m.deadConns, id)
	if c := m.conns[id]; c != nil {
		m.forgetConn(c)
	}
}
