package peer

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// exit ends a connection. If nothing gets out, the client does not see it before something does.
func (m *machine) exit(c *conn, e Exit) {
	if m.over(c) {
		return
	}
	e.Conn = c.id
	m.drop(c)
	if len(c.cutBy) > 0 {
		m.ghosts[c.id] = c.cutBy[0]
		e = Exit{Conn: c.id, After: e.After, HalfOpen: true}
	}
	m.do(e)
}

// crash is an end that the client did not ask for: a process exits, a socket is reset.
func (m *machine) crash(c *conn, code int) { m.exit(c, Exit{Code: code, Reset: m.remote()}) }

// crashAll ends every connection for a fault.
func (m *machine) crashAll(f *fault, code int) {
	for _, c := range m.connections() {
		f.fired(m, c.id)
		m.crash(c, code)
	}
}

// drop forgets a connection and everything that waits on it.
func (m *machine) drop(c *conn) {
	delete(m.conns, c.id)
	maps.DeleteFunc(m.waits, func(_ int, w wait) bool { return w.conn == c })
}

// unghost resets the connections that stand without a server because of a fault.
func (m *machine) unghost(f *fault) {
	for _, id := range slices.Sorted(maps.Keys(m.ghosts)) {
		if m.ghosts[id] == f {
			delete(m.ghosts, id)
			m.do(Exit{Conn: id, Reset: true})
		}
	}
}

// Closed implements Machine.
func (m *machine) Closed(now time.Duration, id int, signal bool) []Action {
	m.turn(now)
	delete(m.ghosts, id) // nobody is there to answer, and nobody asks any more
	c := m.conns[id]
	if c == nil {
		return nil
	}
	leave := func() {
		for _, f := range m.faults {
			if f.hooks.closed != nil && f.hooks.closed(m, f, c, signal) {
				return
			}
		}
		e := Exit{After: m.about(time.Millisecond)}
		if signal && m.cfg.Server.Kind == messages.Stdio {
			e.Text = "TERM"
		}
		m.exit(c, e)
	}
	if signal {
		m.acts(c, leave) // a signal reaches who does not read, but not who is stopped
	} else {
		m.hears(c, leave)
	}
	return m.out
}

// Killed implements Machine.
func (m *machine) Killed(now time.Duration, id int) {
	m.turn(now)
	delete(m.ghosts, id)
	if c := m.conns[id]; c != nil {
		m.drop(c)
	}
}
