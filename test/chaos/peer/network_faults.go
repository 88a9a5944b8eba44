package peer

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// networkFaults are the hooks of the faults of single dials and connections.
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
				// The client opens its GET stream after this notification.
				scheduleCuts(m, f, c)
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
			// Over HTTP+SSE the stream that broke off is the connection.
			m.endConn(c, Exit{})
		}
		return true
	}},
}

// scheduleCuts cuts the streams of a connection once they are old enough. Over legacy HTTP it cuts the GET stream again and
// again, because the client reopens it; on other transports the connection is the stream, and it ends.
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

// scheduleStreamCut cuts one subscription of the modern era, unless its client has cancelled it before.
func scheduleStreamCut(m *machine, f *fault, c *conn, l *subscriptionStream) {
	m.scheduleAfter(c, max(f.params.Duration("every"), time.Millisecond), func() {
		if !f.ended && c.removeStream(l) {
			f.recordFired(m, c.id)
			m.sendOrHold(c, Cut{Conn: c.id, Reply: string(l.id)})
		}
	})
}
