package peer

import (
	"encoding/json"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// protocolFaults are the faults of versions and eras.
var protocolFaults = map[string]hooks{
	"modern-breach": {
		begin: func(m *machine, f *fault) {
			what := f.with.Text("what")
			if what != "subscription-id" && what != "listen-closed" {
				return
			}
			f.every(m, func() {
				for _, c := range m.connections() {
					for _, l := range slices.Clone(c.listens) {
						if c.free() {
							breach(m, f, c, l)
						}
					}
				}
			})
		},
		answer: func(m *machine, f *fault, c *conn, a *answer) bool {
			if f.with.Text("what") == "result-type" && a.result != nil {
				f.fired(m, c.id)
				a.plain = true
			}
			return false
		},
		listening: func(m *machine, f *fault, c *conn, l *listen) {
			if f.with.Text("what") == "early-notification" {
				f.fired(m, c.id)
				m.notify(c, listChangedMethod, "{"+subscription(l.id)+"}", string(l.id))
			}
		},
	},
	"era-flip": {
		begin: func(m *machine, f *fault) {
			m.flips++
			m.crashAll(f, 0)
		},
		receive: func(m *machine, f *fault, c *conn, q *message) bool {
			if partOf(q.Method) == handshake && q.ID != nil {
				f.fired(m, c.id)
			}
			return false
		},
		end: func(m *machine, _ *fault) {
			m.flips--
			for _, c := range m.connections() {
				m.crash(c, 0)
			}
		},
	},
	"wrong-version": {receive: func(m *machine, f *fault, c *conn, q *message) bool {
		version := f.with.Text("version")
		switch {
		case q.ID == nil:
			return false
		case c.era == messages.EraModern:
			m.later(c, q, func() {
				f.fired(m, c.id)
				m.reject(c, q, badVersion(q, version))
			})
		case q.Method == "initialize":
			m.later(c, q, func() {
				f.fired(m, c.id)
				c.version = version
				m.result(c, q, `{"protocolVersion":`+quote(version)+`,"capabilities":{},"serverInfo":`+m.info()+`}`)
			})
		default:
			return false
		}
		return true
	}},
}

// breach does to one subscription what the era forbids.
//
// 2026-07-28, Subscriptions: notifications carry the id of the request that asked for them, and a server that ends a
// subscription says so.
func breach(m *machine, f *fault, c *conn, l *listen) {
	f.fired(m, c.id)
	if f.with.Text("what") == "subscription-id" {
		m.notify(c, listChangedMethod, "{"+subscription(json.RawMessage(`"nobody's"`))+"}", string(l.id))
		return
	}
	c.unlisten(l)
	if m.cfg.Server.Kind == messages.HTTP {
		m.say(c, Cut{Conn: c.id, Reply: string(l.id)})
		return
	}
	// Where all share one stream, nothing can be cut: the nearest to it is to be told without a response.
	m.notify(c, "notifications/cancelled", `{"requestId":`+string(l.id)+`}`, "")
}
