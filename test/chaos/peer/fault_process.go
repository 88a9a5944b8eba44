package peer

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// processFaults are the faults of starts and ends.
var processFaults = map[string]hooks{
	"crash": {begin: func(m *machine, f *fault) {
		for _, c := range m.connections() {
			if f.with.Truth("midcall") && len(c.calls) == 0 {
				continue
			}
			f.fired(m, c.id)
			if signal := f.with.Text("signal"); signal != "" && m.cfg.Server.Kind == messages.Stdio {
				m.exit(c, Exit{Text: signal})
				continue
			}
			m.crash(c, f.with.Int("code"))
		}
		if down := m.now + f.with.Duration("down"); down > m.down {
			m.down, m.downBy = down, f
		}
	}},
	"crash-loop": {
		begin: func(m *machine, f *fault) { m.crashAll(f, f.with.Int("code")) },
		opened: func(m *machine, f *fault, c *conn) {
			m.after(c, f.with.Duration("after"), func() {
				if !f.over {
					f.fired(m, c.id)
					m.crash(c, f.with.Int("code"))
				}
			})
		},
	},
	"exit-after-list": {answered: func(m *machine, f *fault, c *conn, a *answer) {
		if a.page == nil || !a.page.last {
			return
		}
		m.after(c, f.with.Duration("after"), func() {
			if !f.over {
				f.fired(m, c.id)
				m.crash(c, f.with.Int("code"))
			}
		})
	}},
	"hang-start": {
		receive: func(m *machine, f *fault, c *conn, q *message) bool {
			if c.greeted && partOf(q.Method) != handshake {
				return false
			}
			if q.ID != nil {
				f.fired(m, c.id)
			}
			f.hold(c, func() { m.serve(c, q) })
			return true
		},
		end: letGo,
	},
	"slow-start": {start: func(m *machine, f *fault, c *conn) {
		f.fired(m, c.id)
		c.ready += m.about(f.with.Duration("by"))
	}},
	"silent-discover": {receive: func(m *machine, f *fault, c *conn, q *message) bool {
		if q.Method != "server/discover" || c.era == messages.EraModern {
			return false
		}
		f.fired(m, c.id)
		return true
	}},
	"die-on-discover": {receive: func(m *machine, f *fault, c *conn, q *message) bool {
		if q.Method != "server/discover" || c.era == messages.EraModern {
			return false
		}
		m.later(c, q, func() {
			f.fired(m, c.id)
			m.crash(c, f.with.Int("code"))
		})
		return true
	}},
	"ignore-eof": {
		closed: func(m *machine, f *fault, c *conn, signal bool) bool { return !signal && stays(m, f, c) },
		end:    letGo,
	},
	"ignore-term": {
		closed: func(m *machine, f *fault, c *conn, _ bool) bool { return stays(m, f, c) },
		end:    letGo,
	},
	"grandchild": {opened: func(m *machine, f *fault, c *conn) {
		f.fired(m, c.id)
		m.do(Spawn{Conn: c.id, For: f.with.Duration("for"), OwnSession: f.with.Truth("own-session")})
	}},
	"missing-binary": hidden(func(f *fault) (messages.Class, string) {
		if f.with.Text("what") == "config" {
			return messages.ClassConfig, "the program may not be run"
		}
		return messages.ClassMissing, "the program is not there"
	}),
	"exhausted": hidden(func(*fault) (messages.Class, string) {
		return messages.ClassExhausted, "no file descriptors are left"
	}),
}

// stays keeps a connection that the client has closed.
func stays(m *machine, f *fault, c *conn) bool {
	f.fired(m, c.id)
	f.left = append(f.left, c)
	return true
}

// hidden takes away what a connection is opened from.
func hidden(why func(f *fault) (messages.Class, string)) hooks {
	hide := func(m *machine, f *fault, back bool) {
		class, _ := why(f)
		m.do(Hide{Class: class, Back: back, Fault: f.plan.ID, Name: f.plan.Fault})
	}
	return hooks{
		begin: func(m *machine, f *fault) { hide(m, f, false) },
		open: func(m *machine, f *fault, id int) bool {
			class, text := why(f)
			f.fired(m, id)
			m.do(Reject{Conn: id, Class: class, Text: text})
			return true
		},
		end: func(m *machine, f *fault) { hide(m, f, true) },
	}
}

// every lets something happen each time that a fault's parameter says, as long as it lasts.
func (f *fault) every(m *machine, do func()) { m.tick(f, f.with.Duration("every"), do) }

// whole is a time in whole seconds, upwards: Retry-After has no other.
func whole(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }
