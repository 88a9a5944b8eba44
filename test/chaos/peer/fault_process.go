package peer

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// processFaults are the faults of starts and ends.
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
	"silent-discover": {onMessage: func(m *machine, f *fault, c *conn, q *message) bool {
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

// keepConn keeps a connection that the client has closed.
func keepConn(m *machine, f *fault, c *conn) bool {
	f.recordFired(m, c.id)
	f.keptConns = append(f.keptConns, c)
	return true
}

// blockStartHooks takes away what a connection is opened from.
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

// repeatByParam lets something happen each time that a fault's parameter says, as long as it lasts.
func (f *fault) repeatByParam(m *machine, do func()) {
	m.repeatWhileActive(f, f.params.Duration("every"), do)
}

// ceilSeconds is a time in whole seconds, upwards: Retry-After has no other.
func ceilSeconds(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
