package peer

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// networkFaults are those of single dials and connections.
var networkFaults = map[string]hooks{
	"reset": {onBegin: func(m *machine, f *fault) {
		for _, c := range m.sortedConns() {
			f.recordFired(m, c.id)
			m.endConn(c, Exit{Reset: true})
		}
	}},
	"refuse": {
		onBegin: func(m *machine, f *fault) {
			if !f.params.Bool("standing") {
				return
			}
			for _, c := range m.sortedConns() {
				f.recordFired(m, c.id)
				m.endConn(c, Exit{Reset: true})
			}
		},
		onDial: func(m *machine, f *fault, id int) bool {
			f.recordFired(m, id)
			m.addActions(Reject{Conn: id, Class: messages.ClassNetwork, Text: "connection refused"})
			return true
		},
		onUnknownConn: func(m *machine, f *fault, id int, body []byte) bool {
			f.recordFired(m, id)
			m.addActions(Status{Conn: id, Reply: idOf(body)})
			return true
		},
	},
	"cut-stream": {
		onBegin: func(m *machine, f *fault) {
			for _, c := range m.sortedConns() {
				scheduleCuts(m, f, c)
			}
		},
		onConnOpened: func(m *machine, f *fault, c *conn) {
			if m.cfg.Server.Kind != messages.HTTP {
				scheduleCuts(m, f, c)
			}
		},
		onMessage: func(m *machine, f *fault, c *conn, q *message) bool {
			if q.Method == "notifications/initialized" && m.cfg.Server.Kind == messages.HTTP && c.era == messages.EraLegacy {
				scheduleCuts(m, f, c) // the client opens its stream now
			}
			return false
		},
		afterListen: func(m *machine, f *fault, c *conn, l *subscriptionStream) {
			if m.cfg.Server.Kind == messages.HTTP {
				scheduleStreamCut(m, f, c, l)
			}
		},
	},
	"slow-drip": {beforeAnswer: func(m *machine, f *fault, c *conn, a *answer) bool {
		if a.status == 0 {
			f.recordFired(m, c.id)
			a.send.Chunk, a.send.Every = max(f.params.Int("chunk"), 1), f.params.Duration("every")
		}
		return false
	}},
	"truncate": {beforeAnswer: func(m *machine, f *fault, c *conn, a *answer) bool {
		if partOf(a.q.Method) != partCalling || a.status != 0 || !f.drawChance(m) {
			return false
		}
		f.recordFired(m, c.id)
		a.send.Cut = max(len(m.encodeAnswer(a, c.era))/2, 1)
		m.deliverAnswer(c, a)
		if m.cfg.Server.Kind == messages.SSE {
			m.endConn(c, Exit{}) // the stream that broke off was the connection
		}
		return true
	}},
}

// scheduleCuts cuts the streams of a connection when they are old enough: over HTTP those for what the server says unasked, elsewhere
// the connection is the stream.
func scheduleCuts(m *machine, f *fault, c *conn) {
	age := f.params.Duration("every")
	switch {
	case m.cfg.Server.Kind != messages.HTTP:
		m.scheduleAfter(c, max(age, time.Millisecond), func() {
			if !f.ended {
				f.recordFired(m, c.id)
				m.endConn(c, Exit{})
			}
		})
	case c.era == messages.EraModern:
		for _, l := range c.streams {
			scheduleStreamCut(m, f, c, l)
		}
	default:
		m.scheduleAfter(c, max(age, time.Millisecond), func() {
			if f.ended {
				return
			}
			if c.initialized && !c.sessionLost {
				f.recordFired(m, c.id)
				m.sendOrHold(c, Cut{Conn: c.id})
			}
			scheduleCuts(m, f, c)
		})
	}
}

func scheduleStreamCut(m *machine, f *fault, c *conn, l *subscriptionStream) {
	m.scheduleAfter(c, max(f.params.Duration("every"), time.Millisecond), func() {
		if !f.ended && c.removeStream(l) {
			f.recordFired(m, c.id)
			m.sendOrHold(c, Cut{Conn: c.id, Reply: string(l.id)})
		}
	})
}
