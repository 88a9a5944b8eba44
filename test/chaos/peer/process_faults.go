package peer

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// processFaults are the hooks of the faults of starts and ends.
var processFaults = map[string]hooks{
	"crash": {onBegin: func(m *machine, f *fault) {
		for _, c := range m.sortedConns() {
			if f.params.Bool("midcall") && len(c.waitingCalls) == 0 {
				continue
			}
			f.recordFired(m, c.id)
			if signal := f.params.Text("signal"); signal != "" && m.cfg.Server.Kind == messages.Stdio {
				m.endConn(c, Exit{Text: signal})
				continue
			}
			m.crashConn(c, f.params.Int("code"))
		}
		// Of two crashes the one that keeps the server down longer decides.
		if down := m.now + f.params.Duration("down"); down > m.downUntil {
			m.downUntil, m.downFault = down, f
		}
	}},
	"crash-loop": {
		onBegin: func(m *machine, f *fault) { m.crashAll(f, f.params.Int("code")) },
		onConnOpened: func(m *machine, f *fault, c *conn) {
			m.scheduleAfter(c, f.params.Duration("after"), func() {
				if !f.ended {
					f.recordFired(m, c.id)
					m.crashConn(c, f.params.Int("code"))
				}
			})
		},
	},
	"exit-after-list": {afterAnswer: func(m *machine, f *fault, c *conn, a *answer) {
		if a.page == nil || !a.page.last {
			return
		}
		m.scheduleAfter(c, f.params.Duration("after"), func() {
			if !f.ended {
				f.recordFired(m, c.id)
				m.crashConn(c, f.params.Int("code"))
			}
		})
	}},
	"hang-start": {
		onMessage: func(m *machine, f *fault, c *conn, q *message) bool {
			// After the handshake the fault no longer holds the connection; it hangs starts only.
			if c.handshakeDone && partOf(q.Method) != partHandshake {
				return false
			}
			if q.ID != nil {
				f.recordFired(m, c.id)
			}
			f.holdUntilEnd(c, func() { m.serveMessage(c, q) })
			return true
		},
		onEnd: releaseHeld,
	},
	"slow-start": {onConnCreated: func(m *machine, f *fault, c *conn) {
		f.recordFired(m, c.id)
		c.readyAt += m.drawAround(f.params.Duration("by"))
	}},
	"starved": {onConnCreated: func(m *machine, f *fault, c *conn) {
		f.recordFired(m, c.id)
		c.readyAt += m.drawAround(f.params.Duration("by"))
		waits := f.params.Float("waits")
		m.addActions(Busy{Conn: c.id, Runs: 1 - waits, Waits: waits})
	}},
	"silent-discover": {onMessage: func(m *machine, f *fault, c *conn, q *message) bool {
		// A modern server knows server/discover and answers it; only a legacy one can be silent to it.
		if q.Method != "server/discover" || c.era == messages.EraModern {
			return false
		}
		f.recordFired(m, c.id)
		return true
	}},
	"die-on-discover": {onMessage: func(m *machine, f *fault, c *conn, q *message) bool {
		if q.Method != "server/discover" || c.era == messages.EraModern {
			return false
		}
		m.scheduleAnswer(c, q, func() {
			f.recordFired(m, c.id)
			m.crashConn(c, f.params.Int("code"))
		})
		return true
	}},
	"ignore-eof": {
		onClosed: func(m *machine, f *fault, c *conn, signal bool) bool { return !signal && keepConn(m, f, c) },
		onEnd:    releaseHeld,
	},
	"ignore-term": {
		onClosed: func(m *machine, f *fault, c *conn, _ bool) bool { return keepConn(m, f, c) },
		onEnd:    releaseHeld,
	},
	"grandchild": {onConnOpened: func(m *machine, f *fault, c *conn) {
		f.recordFired(m, c.id)
		m.addActions(Spawn{Conn: c.id, For: f.params.Duration("for"), OwnSession: f.params.Bool("own-session")})
	}},
	"missing-binary": blockStartHooks(func(f *fault) (messages.Class, string) {
		if f.params.Text("what") == "config" {
			return messages.ClassConfig, "the program may not be run"
		}
		return messages.ClassMissing, "the program is not there"
	}),
	"exhausted": blockStartHooks(func(*fault) (messages.Class, string) {
		return messages.ClassExhausted, "no file descriptors are left"
	}),
}

// keepConn keeps a connection open that the client has closed. releaseHeld ends it with the fault.
func keepConn(m *machine, f *fault, c *conn) bool {
	f.recordFired(m, c.id)
	f.keptConns = append(f.keptConns, c)
	return true
}

// blockStartHooks returns the hooks of a fault that makes every start fail for one reason. It rejects the dials that reach the
// machine; BlockStart makes those fail that would not.
func blockStartHooks(reason func(f *fault) (messages.Class, string)) hooks {
	blockStart := func(m *machine, f *fault, undo bool) {
		class, _ := reason(f)
		m.addActions(BlockStart{Class: class, Undo: undo, Fault: f.plan.ID, Name: f.plan.Fault})
	}
	return hooks{
		onBegin: func(m *machine, f *fault) { blockStart(m, f, false) },
		onDial: func(m *machine, f *fault, id int) bool {
			class, text := reason(f)
			f.recordFired(m, id)
			m.addActions(Reject{Conn: id, Class: class, Text: text})
			return true
		},
		onEnd: func(m *machine, f *fault) { blockStart(m, f, true) },
	}
}

// repeatByParam repeats something in the interval of the parameter every, until the fault ends.
func (f *fault) repeatByParam(m *machine, do func()) {
	m.repeatWhileActive(f, f.params.Duration("every"), do)
}

// ceilSeconds rounds a time up to whole seconds, because Retry-After has no smaller unit.
func ceilSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
