package peer

import (
	"bytes"
	"strconv"
)

// outputFaults are the hooks of the faults of what a server writes beside, before and instead of answers.
var outputFaults = map[string]hooks{
	"noise": {onBegin: func(m *machine, f *fault) {
		every, count := splitRate(f.params.Float("rate"))
		when := f.params.Text("when")
		m.repeatWhileActive(f, every, func() {
			// Noise is lost on a connection that is held up: holding it back would need memory without a bound.
			for _, c := range m.sortedConns() {
				if !c.isUnblocked() || when == "before" && c.handshakeDone || when == "during" && !c.handshakeDone {
					continue
				}
				f.recordFired(m, c.id)
				line := noiseLines[m.rand.IntN(len(noiseLines))]
				m.addActions(Raw{Conn: c.id, Bytes: []byte(line + "\n"), Repeat: count})
			}
		})
	}},
	"stderr-flood": floodHooks(true),
	"endless-line": floodHooks(false),
	"huge-line": {afterRun: func(m *machine, f *fault, c *conn, _ *call, a *answer) bool {
		if f.drawChance(m) {
			f.recordFired(m, c.id)
			a.pad = max(a.pad, f.params.Int("size"))
		}
		return false
	}},
	"half-line": {
		beforeAnswer: func(m *machine, f *fault, c *conn, a *answer) bool {
			if partOf(a.q.Method) != partCalling || len(c.mutedBy) > 0 || !f.drawChance(m) {
				return false
			}
			f.recordFired(m, c.id)
			body := append(m.encodeAnswer(a, c.era), '\n')
			half := len(body) / 2
			m.sendOrHold(c, Raw{Conn: c.id, Bytes: body[:half]})
			switch f.params.Text("then") {
			case "exit":
				m.crashConn(c, 1)
			// The answer follows whole, on the line that has begun.
			case "next":
				m.sendOrHold(c, Send{Conn: c.id, Reply: string(a.q.ID), Body: body[:len(body)-1]})
			default:
				// The rest of the line, and everything after it, waits for the end of the fault.
				c.mutedBy = append(c.mutedBy, f)
				c.heldOutput = append(c.heldOutput, Raw{Conn: c.id, Bytes: body[half:], Reply: string(a.q.ID), Body: body[:len(body)-1]})
			}
			return true
		},
		onEnd: func(m *machine, f *fault) { m.releaseFault(f) },
	},
	"duplicate-response": {beforeAnswer: func(m *machine, f *fault, c *conn, a *answer) bool {
		if partOf(a.q.Method) == partCalling && a.status == 0 && f.drawChance(m) {
			f.recordFired(m, c.id)
			a.duplicate = true
		}
		return false
	}},
	"unknown-response": {beforeAnswer: func(m *machine, f *fault, c *conn, a *answer) bool {
		if partOf(a.q.Method) == partCalling && a.status == 0 && f.drawChance(m) {
			f.recordFired(m, c.id)
			f.effectCount++
			// The id is far above those that a client reaches by counting, so that no request bears it.
			id := strconv.Itoa(1_000_000_000 + f.effectCount)
			m.sendOrHold(c, Send{
				Conn: c.id, Reply: string(a.q.ID), More: true,
				Body: []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","content":[]}}`),
			})
		}
		return false
	}},
	"late-response": {
		onCall: func(m *machine, f *fault, c *conn, k *call) bool {
			if !f.drawChance(m) {
				return false
			}
			f.holdUntilEnd(c, func() { m.scheduleCall(c, k) })
			k.heldBy = f
			return true
		},
		onCancel: func(m *machine, f *fault, c *conn, k *call) bool {
			if k.heldBy != f {
				return false
			}
			k.heldBy = nil
			// The call runs after the cancellation, and its late answer is the fault's effect.
			m.scheduleAfter(c, f.params.Duration("by"), func() {
				if !k.finished {
					f.recordFired(m, c.id)
					m.runCall(c, k)
				}
			})
			return true
		},
		onEnd: releaseHeld,
	},
}

// noiseLines are lines that real programs write to standard output although they belong elsewhere.
var noiseLines = []string{
	"Debugger listening on ws://127.0.0.1:9229/0f2c936f-b1cd-4ac9-aab3-f63b0f33d55e",
	"npm warn deprecated inflight@1.0.6: This module is not supported",
	"[2026-07-28T12:00:00.000Z] INFO server started on stdio",
	"(node:4711) ExperimentalWarning: SQLite is an experimental feature",
	"{not json at all",
	"{\"level\":\"info\",\"msg\":\"structured, but no message\"}",
	"Traceback (most recent call last):",
	"████████████████████ 100%",
}

// floodHooks returns the hooks of a fault that writes without end: lines to standard error, or one endless line to standard
// output.
func floodHooks(stderr bool) hooks {
	const block = 64 << 10
	line := bytes.Repeat([]byte{'x'}, 1024)
	if stderr {
		line[1023] = '\n'
	}
	lines := bytes.Repeat(line, block/len(line))
	return hooks{
		onBegin: func(m *machine, f *fault) {
			f.repeatByParam(m, func() {
				for _, c := range m.sortedConns() {
					if !c.isUnblocked() {
						continue
					}
					f.recordFired(m, c.id)
					f.countPerConn[c.id]++
					times := max(f.params.Int("bytes")/block, 1)
					m.addActions(Raw{Conn: c.id, Bytes: lines, Repeat: times, Stderr: stderr})
				}
			})
		},
		onEnd: func(m *machine, f *fault) {
			for _, c := range m.sortedConns() {
				// A newline ends the endless line, so that the next message stands on a line of its own.
				if !stderr && f.countPerConn[c.id] > 0 {
					m.sendOrHold(c, Raw{Conn: c.id, Bytes: []byte("\n")})
				}
			}
		},
	}
}
