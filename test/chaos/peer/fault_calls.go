package peer

import (
	"strconv"
	"time"
)

// callFaults are the faults of tool calls.
var callFaults = map[string]hooks{
	"hang-call": {
		called: func(m *machine, f *fault, c *conn, k *call) bool {
			if tool := f.with.Text("tool"); tool != "" && tool != k.tool.name || !f.strikes(m) {
				return false
			}
			f.fired(m, c.id)
			f.hold(c, func() { m.begin(c, k) })
			return true
		},
		end: letGo,
	},
	"ignore-cancel": {
		called: func(m *machine, f *fault, c *conn, k *call) bool {
			f.hold(c, func() { m.begin(c, k) })
			m.after(c, f.with.Duration("by"), func() { m.begin(c, k) })
			return true
		},
		cancelled: func(m *machine, f *fault, c *conn, _ *call) bool {
			f.fired(m, c.id)
			return true
		},
		end: letGo,
	},
	"endless-progress": {
		called: func(m *machine, f *fault, c *conn, k *call) bool {
			if !f.strikes(m) {
				return false
			}
			f.hold(c, func() { m.begin(c, k) })
			m.progress(f, c, k, 1)
			return true
		},
		end: letGo,
	},
	"bad-output": {ran: func(m *machine, f *fault, c *conn, _ *call, a *answer) bool {
		if f.strikes(m) {
			f.fired(m, c.id)
			a.structured = `{"value":"not a number"}`
		}
		return false
	}},
	"tool-error": {
		run: func(m *machine, f *fault, c *conn, k *call) bool {
			if !f.with.Truth("rpc") || !f.strikes(m) {
				return false
			}
			f.fired(m, c.id)
			m.refuse(c, k.q, -f.with.Int("code"), "the tool is out of order", "")
			return true
		},
		ran: func(m *machine, f *fault, c *conn, _ *call, a *answer) bool {
			if !f.with.Truth("rpc") && f.strikes(m) {
				f.fired(m, c.id)
				a.isError = true
			}
			return false
		},
	},
	"die-mid-call": {ran: func(m *machine, f *fault, c *conn, _ *call, _ *answer) bool {
		if !f.strikes(m) {
			return false
		}
		f.fired(m, c.id)
		m.crash(c, f.with.Int("code"))
		return true
	}},
	"answer-and-die": {answered: func(m *machine, f *fault, c *conn, a *answer) {
		if partOf(a.q.Method) == calling && f.strikes(m) {
			f.fired(m, c.id)
			m.exit(c, Exit{Code: f.with.Int("code")})
		}
	}},
	"latency": {delay: func(m *machine, f *fault, c *conn, q *message) time.Duration {
		if partOf(q.Method) == handshake {
			return 0
		}
		f.fired(m, c.id)
		by := f.with.Duration("by")
		spread := time.Duration(float64(by) * f.with.Float("jitter"))
		return by - spread + time.Duration(m.rand.Int64N(2*int64(spread)+1))
	}},
	"big-result": {ran: func(m *machine, f *fault, c *conn, _ *call, a *answer) bool {
		if f.strikes(m) {
			f.fired(m, c.id)
			a.pad = max(a.pad, f.with.Int("size"))
		}
		return false
	}},
}

// progress tells of progress until the end of the fault, or of the call. Whoever did not ask for it is told under the id of
// the request, as some servers do.
func (m *machine) progress(f *fault, c *conn, k *call, step int) {
	m.after(c, max(f.with.Duration("every"), time.Millisecond), func() {
		if f.over || k.over {
			return
		}
		f.fired(m, c.id)
		token := k.q.meta.progress
		if token == nil {
			token = k.q.ID
		}
		m.notify(c, "notifications/progress",
			`{"progressToken":`+string(token)+`,"progress":`+strconv.Itoa(step)+`}`, string(k.q.ID))
		m.progress(f, c, k, step+1)
	})
}
