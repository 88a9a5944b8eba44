package peer

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// httpFaults are the faults of HTTP: statuses, sessions, credentials.
var httpFaults = map[string]hooks{
	"lose-session": {begin: func(m *machine, f *fault) { loseSessions(m, f) }},
	"stale-session-400": {
		begin: func(m *machine, _ *fault) { loseSessions(m, nil) },
		noSession: func(m *machine, f *fault, c *conn, q *message) bool {
			f.fired(m, c.id)
			m.say(c, Status{
				Conn: c.id, Reply: string(q.ID), Code: 400, Header: ofJSON(),
				Body: failure(nil, -32000, "Bad Request: No valid session ID provided", ""),
			})
			return true
		},
	},
	"throttle": refusing(messages.ClassThrottled, func(f *fault) Status {
		return Status{Code: f.with.Int("status"), RetryAfter: whole(f.with.Duration("after"))}
	}),
	"unauthorized": refusing(messages.ClassUnauthorized, func(f *fault) Status {
		return Status{Code: 401, Header: challenge("invalid_token", f.with.Text("scope"))}
	}),
	"forbidden": refusing(messages.ClassForbidden, func(f *fault) Status {
		return Status{Code: 403, Header: challenge("insufficient_scope", f.with.Text("scope"))}
	}),
	"redirect": refusing(messages.ClassProtocol, func(f *fault) Status {
		return Status{Code: f.with.Int("status"), Header: map[string]string{"Location": f.with.Text("to")}}
	}),
	"server-error": refusing(messages.ClassNetwork, func(f *fault) Status {
		return Status{
			Code: f.with.Int("status"), Header: map[string]string{"Content-Type": "text/plain"}, Body: []byte("out of order"),
		}
	}),
	"rotate-token": {begin: func(m *machine, f *fault) {
		for show := range m.shown {
			m.revoked[show] = f
		}
		clear(m.shown)
	}},
	"silent-delete": {
		closed: func(m *machine, f *fault, c *conn, _ bool) bool { return stays(m, f, c) },
		end:    letGo,
	},
	"wrong-content-type": {answer: func(m *machine, f *fault, c *conn, a *answer) bool {
		if a.status == 0 && f.concerns(a.q.Method) && f.strikes(m) {
			f.fired(m, c.id)
			a.send.Type = f.with.Text("type")
		}
		return false
	}},
}

// loseSessions makes the server forget its sessions. What it is at work on it completes.
func loseSessions(m *machine, f *fault) {
	for _, c := range m.connections() {
		c.lost, c.lostBy = true, f
		c.listens, c.initialized = nil, false
	}
}

// challenge is WWW-Authenticate as RFC 6750 has it.
func challenge(wrong, scope string) map[string]string {
	value := `Bearer error="` + wrong + `"`
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

// concerns reports whether a method is one of those that the parameter when names.
func (f *fault) concerns(method string) bool {
	switch f.with.Text("when") {
	case "handshake":
		return partOf(method) == handshake
	case "call":
		return partOf(method) == calling
	}
	return true
}

// refusing is a fault by which requests are refused with a status: POSTs by themselves, and elsewhere the opening, of which the
// handshake is a part.
func refusing(class messages.Class, status func(f *fault) Status) hooks {
	return hooks{
		open: func(m *machine, f *fault, id int) bool {
			if m.cfg.Server.Kind == messages.HTTP || f.with.Text("when") == "call" || !f.strikesAny(m) {
				return false // over HTTP nothing is said before the first message
			}
			s := status(f)
			f.fired(m, id)
			m.do(Reject{
				Conn: id, Class: class, Code: s.Code, RetryAfter: s.RetryAfter, Header: s.Header, Text: string(s.Body),
			})
			return true
		},
		receive: func(m *machine, f *fault, c *conn, q *message) bool {
			if m.cfg.Server.Kind == messages.WebSocket || !f.concerns(q.Method) || !f.strikesAny(m) {
				return false
			}
			m.refused(f, c, q, status(f))
			return true
		},
	}
}

// strikesAny is strikes for faults of which some have no chance: those strike always.
func (f *fault) strikesAny(m *machine) bool { return f.with.Text("chance") == "" || f.strikes(m) }

// refused refuses one message. The refusal takes the time that an answer takes, except where the POST is answered in the same
// turn: for a notification, and over HTTP+SSE always.
func (m *machine) refused(f *fault, c *conn, q *message, s Status) {
	s.Conn, s.Reply = c.id, string(q.ID)
	send := func() {
		f.fired(m, c.id)
		m.say(c, s)
	}
	if q.ID == nil || m.cfg.Server.Kind == messages.SSE {
		send()
		return
	}
	m.after(c, m.about(m.cfg.Server.Latency), send)
}

// revokedBy is the fault through which the credentials of a message count no more, nil if they do.
func (m *machine) revokedBy(q *message) *fault { return m.revoked[q.header["Authorization"]] }
