package peer

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// networkFaults are those of single dials and connections.
var networkFaults = map[string]hooks{
	"reset": {begin: func(m *machine, f *fault) {
		for _, c := range m.connections() {
			f.fired(m, c.id)
			m.exit(c, Exit{Reset: true})
		}
	}},
	"refuse": {
		begin: func(m *machine, f *fault) {
			if !f.with.Truth("standing") {
				return
			}
			for _, c := range m.connections() {
				f.fired(m, c.id)
				m.exit(c, Exit{Reset: true})
			}
		},
		open: func(m *machine, f *fault, id int) bool {
			f.fired(m, id)
			m.do(Reject{Conn: id, Class: messages.ClassNetwork, Text: "connection refused"})
			return true
		},
		stranger: func(m *machine, f *fault, id int, body []byte) bool {
			f.fired(m, id)
			m.do(Status{Conn: id, Reply: idOf(body)})
			return true
		},
	},
	"cut-stream": {
		begin: func(m *machine, f *fault) {
			for _, c := range m.connections() {
				ages(m, f, c)
			}
		},
		opened: func(m *machine, f *fault, c *conn) {
			if m.cfg.Server.Kind != messages.HTTP {
				ages(m, f, c)
			}
		},
		receive: func(m *machine, f *fault, c *conn, q *message) bool {
			if q.Method == "notifications/initialized" && m.cfg.Server.Kind == messages.HTTP && c.era == messages.EraLegacy {
				ages(m, f, c) // the client opens its stream now
			}
			return false
		},
		listens: func(m *machine, f *fault, c *conn, l *listen) {
			if m.cfg.Server.Kind == messages.HTTP {
				agesListen(m, f, c, l)
			}
		},
	},
	"slow-drip": {answer: func(m *machine, f *fault, c *conn, a *answer) bool {
		if a.status == 0 {
			f.fired(m, c.id)
			a.send.Chunk, a.send.Every = max(f.with.Int("chunk"), 1), f.with.Duration("every")
		}
		return false
	}},
	"truncate": {answer: func(m *machine, f *fault, c *conn, a *answer) bool {
		if partOf(a.q.Method) != calling || a.status != 0 || !f.strikes(m) {
			return false
		}
		f.fired(m, c.id)
		a.send.Cut = max(len(m.body(a, c.era))/2, 1)
		m.send(c, a)
		if m.cfg.Server.Kind == messages.SSE {
			m.exit(c, Exit{}) // the stream that broke off was the connection
		}
		return true
	}},
}

// ages cuts the streams of a connection when they are old enough: over HTTP those for what the server says unasked, elsewhere
// the connection is the stream.
func ages(m *machine, f *fault, c *conn) {
	old := f.with.Duration("every")
	switch {
	case m.cfg.Server.Kind != messages.HTTP:
		m.after(c, max(old, time.Millisecond), func() {
			if !f.over {
				f.fired(m, c.id)
				m.exit(c, Exit{})
			}
		})
	case c.era == messages.EraModern:
		for _, l := range c.listens {
			agesListen(m, f, c, l)
		}
	default:
		m.after(c, max(old, time.Millisecond), func() {
			if f.over {
				return
			}
			if c.initialized && !c.lost {
				f.fired(m, c.id)
				m.say(c, Cut{Conn: c.id})
			}
			ages(m, f, c)
		})
	}
}

func agesListen(m *machine, f *fault, c *conn, l *listen) {
	m.after(c, max(f.with.Duration("every"), time.Millisecond), func() {
		if !f.over && c.unlisten(l) {
			f.fired(m, c.id)
			m.say(c, Cut{Conn: c.id, Reply: string(l.id)})
		}
	})
}
