package peer

import (
	"encoding/json"
	"strconv"
	"time"
)

// callFaults are the hooks of the faults of tool calls. The catalogue describes each fault and its parameters.
var callFaults = map[string]hooks{
	"hang-call": {
		onCall: func(m *machine, f *fault, c *conn, k *call) bool {
			if tool := f.params.Text("tool"); tool != "" && tool != k.tool.name || !f.drawChance(m) {
				return false
			}
			f.recordFired(m, c.id)
			f.holdUntilEnd(c, func() { m.scheduleCall(c, k) })
			return true
		},
		onEnd: releaseHeld,
	},
	"ignore-cancel": {
		onCall: func(m *machine, f *fault, c *conn, k *call) bool {
			// The call waits in any case, because the fault's effect needs a cancellation: the fault records it only when one
			// arrives.
			f.holdUntilEnd(c, func() { m.scheduleCall(c, k) })
			m.scheduleAfter(c, f.params.Duration("by"), func() { m.scheduleCall(c, k) })
			return true
		},
		onCancel: func(m *machine, f *fault, c *conn, _ *call) bool {
			f.recordFired(m, c.id)
			return true
		},
		onEnd: releaseHeld,
	},
	"endless-progress": {
		onCall: func(m *machine, f *fault, c *conn, k *call) bool {
			if !f.drawChance(m) {
				return false
			}
			f.holdUntilEnd(c, func() { m.scheduleCall(c, k) })
			m.repeatProgress(f, c, k, 1)
			return true
		},
		onEnd: releaseHeld,
	},
	"bad-output": {afterRun: func(m *machine, f *fault, c *conn, _ *call, a *answer) bool {
		if f.drawChance(m) {
			f.recordFired(m, c.id)
			a.structured = `{"value":"not a number"}`
		}
		return false
	}},
	"tool-error": {
		beforeRun: func(m *machine, f *fault, c *conn, k *call) bool {
			if !f.params.Bool("rpc") || !f.drawChance(m) {
				return false
			}
			f.recordFired(m, c.id)
			// The parameter code has no sign, because parameters of kind Count have none; JSON-RPC codes are negative.
			m.answerError(c, k.q, -f.params.Int("code"), "the tool is out of order", "")
			return true
		},
		afterRun: func(m *machine, f *fault, c *conn, _ *call, a *answer) bool {
			if !f.params.Bool("rpc") && f.drawChance(m) {
				f.recordFired(m, c.id)
				a.isError = true
			}
			return false
		},
	},
	"die-mid-call": {afterRun: func(m *machine, f *fault, c *conn, _ *call, _ *answer) bool {
		if !f.drawChance(m) {
			return false
		}
		f.recordFired(m, c.id)
		m.crashConn(c, f.params.Int("code"))
		return true
	}},
	"answer-and-die": {afterAnswer: func(m *machine, f *fault, c *conn, a *answer) {
		if partOf(a.q.Method) == partCalling && f.drawChance(m) {
			f.recordFired(m, c.id)
			m.endConn(c, Exit{Code: f.params.Int("code")})
		}
	}},
	"latency": {extraDelay: func(m *machine, f *fault, c *conn, q *message) time.Duration {
		if partOf(q.Method) == partHandshake {
			return 0
		}
		f.recordFired(m, c.id)
		delay := f.params.Duration("by")
		if jitter := f.params.Duration("jitter"); jitter > 0 {
			return delay + time.Duration(m.rand.Int64N(int64(jitter)))
		}
		spread := time.Duration(float64(delay) * f.params.Float("jitter"))
		return delay - spread + time.Duration(m.rand.Int64N(2*int64(spread)+1))
	}},
	"big-result": {afterRun: func(m *machine, f *fault, c *conn, _ *call, a *answer) bool {
		if f.drawChance(m) {
			f.recordFired(m, c.id)
			a.pad = max(a.pad, f.params.Int("size"))
		}
		return false
	}},
}

// repeatProgress sends progress for a call until the fault or the call ends. For a call without a progress token it uses the
// request's id, as some servers do.
func (m *machine) repeatProgress(f *fault, c *conn, k *call, step int) {
	m.scheduleAfter(c, max(f.params.Duration("every"), time.Millisecond), func() {
		if f.ended || k.finished {
			return
		}
		f.recordFired(m, c.id)
		token := k.q.meta.progressToken
		if token == nil {
			token = k.q.ID
		}
		m.sendNotification(c, "notifications/progress",
			`{"progressToken":`+string(token)+`,"progress":`+strconv.Itoa(step)+progressMessage(k.id)+`}`, string(k.q.ID))
		if step%strayEvery == 0 {
			m.sendNotification(c, "notifications/progress", `{"progressToken":"nobody","progress":`+strconv.Itoa(step)+`,"message":"nobody"}`, string(k.q.ID))
		}
		m.repeatProgress(f, c, k, step+1)
	})
}

// strayEvery is how many notifications of progress come to one for a token that nobody has given out.
const strayEvery = 5

// progressMessage is the member of a notification that names the call, so that the client shows whose progress it took it for.
func progressMessage(call string) string {
	if call == "" {
		return ""
	}
	text, _ := json.Marshal(call)
	return `,"message":` + string(text)
}
