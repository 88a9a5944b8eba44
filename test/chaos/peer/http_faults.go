package peer

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// httpFaults are the hooks of the faults of HTTP: statuses, sessions, credentials.
var httpFaults = map[string]hooks{
	"lose-session": {onBegin: func(m *machine, f *fault) { loseSessions(m, f) }},
	"stale-session-400": {
		onBegin: func(m *machine, _ *fault) { loseSessions(m, nil) },
		onLostSession: func(m *machine, f *fault, c *conn, q *message) bool {
			f.recordFired(m, c.id)
			m.sendOrHold(c, Status{
				Conn: c.id, Reply: string(q.ID), Code: 400, Header: jsonHeader(),
				Body: errorBody(nil, -32000, "Bad Request: No valid session ID provided", ""),
			})
			return true
		},
	},
	"throttle": refusalHooks(messages.ClassThrottled, func(f *fault) Status {
		return Status{Code: f.params.Int("status"), RetryAfter: ceilSeconds(f.params.Duration("after"))}
	}),
	"unauthorized": refusalHooks(messages.ClassUnauthorized, func(f *fault) Status {
		return Status{Code: 401, Header: challengeHeader("invalid_token", f.params.Text("scope"))}
	}),
	"forbidden": refusalHooks(messages.ClassForbidden, func(f *fault) Status {
		return Status{Code: 403, Header: challengeHeader("insufficient_scope", f.params.Text("scope"))}
	}),
	"redirect": refusalHooks(messages.ClassProtocol, func(f *fault) Status {
		return Status{Code: f.params.Int("status"), Header: map[string]string{"Location": f.params.Text("to")}}
	}),
	"server-error": refusalHooks(messages.ClassNetwork, func(f *fault) Status {
		return Status{
			Code: f.params.Int("status"), Header: map[string]string{"Content-Type": "text/plain"}, Body: []byte("out of order"),
		}
	}),
	// Only credentials shown before the fault are revoked; a client that signs in anew is served.
	"rotate-token": {onBegin: func(m *machine, f *fault) {
		for show := range m.seenTokens {
			m.revokedTokens[show] = f
		}
		clear(m.seenTokens)
	}},
	"silent-delete": {
		onClosed: func(m *machine, f *fault, c *conn, _ bool) bool { return keepConn(m, f, c) },
		onEnd:    releaseHeld,
	},
	"wrong-content-type": {beforeAnswer: func(m *machine, f *fault, c *conn, a *answer) bool {
		if a.status == 0 && f.concernsMethod(a.q.Method) && f.drawChance(m) {
			f.recordFired(m, c.id)
			a.send.Type = f.params.Text("type")
		}
		return false
	}},
}

// loseSessions makes the server forget its sessions; requests under way complete. f is the fault that refuseSession later
// records, nil if the caller records its effect itself.
func loseSessions(m *machine, f *fault) {
	for _, c := range m.sortedConns() {
		c.sessionLost, c.lostFault = true, f
		c.streams, c.initialized = nil, false
	}
}

// challengeHeader returns WWW-Authenticate in the form of RFC 6750. It drops from scope what a quoted string cannot hold,
// because the parameter comes from a scenario.
func challengeHeader(errorCode, scope string) map[string]string {
	value := `Bearer error="` + errorCode + `"`
	if scope = strings.Map(func(r rune) rune {
		if r == '"' || r == '\\' || r < ' ' || r > '~' {
			return -1
		}
		return r
	}, scope); scope != "" {
		value += `, scope="` + scope + `"`
	}
	return map[string]string{"WWW-Authenticate": value}
}

// concernsMethod reports whether the parameter when selects a method; other values than handshake and call select all.
func (f *fault) concernsMethod(method string) bool {
	switch f.params.Text("when") {
	case "handshake":
		return partOf(method) == partHandshake
	case "call":
		return partOf(method) == partCalling
	}
	return true
}

// refusalHooks returns the hooks of a fault that refuses requests with a status. Over HTTP it refuses single POSTs; the other
// transports can refuse only the opening, which counts as part of the handshake.
func refusalHooks(class messages.Class, status func(f *fault) Status) hooks {
	return hooks{
		onDial: func(m *machine, f *fault, id int) bool {
			if m.cfg.Server.Kind == messages.HTTP || f.params.Text("when") == "call" || !f.drawOptionalChance(m) {
				// Over HTTP a dial sends nothing; the first message is the first that a server can refuse.
				return false
			}
			s := status(f)
			f.recordFired(m, id)
			m.addActions(Reject{
				Conn: id, Class: class, Code: s.Code, RetryAfter: s.RetryAfter, Header: s.Header, Text: string(s.Body),
			})
			return true
		},
		onMessage: func(m *machine, f *fault, c *conn, q *message) bool {
			if m.cfg.Server.Kind == messages.WebSocket || !f.concernsMethod(q.Method) || !f.drawOptionalChance(m) {
				return false
			}
			m.refuseMessage(f, c, q, status(f))
			return true
		},
	}
}

// drawOptionalChance draws by the parameter chance; a fault without that parameter always strikes.
func (f *fault) drawOptionalChance(m *machine) bool {
	_, has := f.params["chance"]
	return !has || f.drawChance(m)
}

// refuseMessage refuses one message with a status. The refusal takes the server's latency, except where the transport answers
// the POST in the same turn: for a notification, and over HTTP+SSE always.
func (m *machine) refuseMessage(f *fault, c *conn, q *message, s Status) {
	s.Conn, s.Reply = c.id, string(q.ID)
	send := func() {
		f.recordFired(m, c.id)
		m.sendOrHold(c, s)
	}
	if q.ID == nil || m.cfg.Server.Kind == messages.SSE {
		send()
		return
	}
	m.scheduleAfter(c, m.drawAround(m.cfg.Server.Latency), send)
}

// revokingFault returns the fault that revoked the credential of a message, nil if the credential is valid.
func (m *machine) revokingFault(q *message) *fault { return m.revokedTokens[q.header["Authorization"]] }
