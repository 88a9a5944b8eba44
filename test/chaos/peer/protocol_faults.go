package peer

import (
	"encoding/json"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// protocolFaults are the hooks of the faults of versions and eras.
var protocolFaults = map[string]hooks{
	"modern-breach": {
		onBegin: func(m *machine, f *fault) {
			what := f.params.Text("what")
			if what != "subscription-id" && what != "listen-closed" {
				return
			}
			f.repeatByParam(m, func() {
				for _, c := range m.sortedConns() {
					for _, l := range slices.Clone(c.streams) {
						if c.isUnblocked() {
							breachProtocol(m, f, c, l)
						}
					}
				}
			})
		},
		beforeAnswer: func(m *machine, f *fault, c *conn, a *answer) bool {
			// A result that asks for input, or names a task, and does not say so is a whole result by the specification, and no
			// client can know better. So only whole results are in breach.
			if f.params.Text("what") == "result-type" && a.result != nil && a.resultType == "" {
				f.recordFired(m, c.id)
				a.omitResultType = true
			}
			return false
		},
		beforeListen: func(m *machine, f *fault, c *conn, l *subscriptionStream) {
			if f.params.Text("what") == "early-notification" {
				f.recordFired(m, c.id)
				m.sendNotification(c, listChangedMethod, "{"+subscriptionMeta(l.id)+"}", string(l.id))
			}
		},
	},
	"era-flip": {
		onBegin: func(m *machine, f *fault) {
			m.eraFlips++
			m.changeHeaderParams()
			m.crashAll(f, 0)
		},
		onMessage: func(m *machine, f *fault, c *conn, q *message) bool {
			if partOf(q.Method) == partHandshake && q.ID != nil {
				f.recordFired(m, c.id)
			}
			return false
		},
		// The era turns back: clients that agreed on the other era must not go on with it, so their connections end.
		onEnd: func(m *machine, _ *fault) {
			m.eraFlips--
			m.changeHeaderParams()
			for _, c := range m.sortedConns() {
				m.crashConn(c, 0)
			}
		},
	},
	"wrong-version": {onMessage: func(m *machine, f *fault, c *conn, q *message) bool {
		version := f.params.Text("version")
		switch {
		case q.ID == nil:
			return false
		case c.era == messages.EraModern:
			m.scheduleAnswer(c, q, func() {
				f.recordFired(m, c.id)
				m.rejectRequest(c, q, versionProblem(q, version))
			})
		case q.Method == "initialize":
			m.scheduleAnswer(c, q, func() {
				f.recordFired(m, c.id)
				c.version = version
				m.answerResult(c, q, `{"protocolVersion":`+quoteJSON(version)+`,"capabilities":{},"serverInfo":`+m.serverInfo()+`}`)
			})
		default:
			return false
		}
		return true
	}},
}

// breachProtocol breaks one rule of the modern era on one subscription, as the parameter what says.
func breachProtocol(m *machine, f *fault, c *conn, l *subscriptionStream) {
	f.recordFired(m, c.id)
	if f.params.Text("what") == "subscription-id" {
		m.sendNotification(c, listChangedMethod, "{"+subscriptionMeta(json.RawMessage(`"nobody's"`))+"}", string(l.id))
		return
	}
	c.removeStream(l)
	if m.cfg.Server.Kind == messages.HTTP {
		m.sendOrHold(c, Cut{Conn: c.id, Reply: string(l.id)})
		return
	}
	// Over stdio all subscriptions share one stream and none can be cut. The nearest breach is a cancellation that the server
	// itself sends.
	m.sendNotification(c, "notifications/cancelled", `{"requestId":`+string(l.id)+`}`, "")
}
