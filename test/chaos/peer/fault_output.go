package peer

import (
	"bytes"
	"strconv"
)

// outputFaults are the faults of what is written beside, before and instead of answers.
var outputFaults = map[string]hooks{
	"noise": {begin: func(m *machine, f *fault) {
		every, count := pace(f.with.Float("rate"))
		when := f.with.Text("when")
		m.tick(f, every, func() {
			for _, c := range m.connections() {
				if !c.free() || when == "before" && c.greeted || when == "during" && !c.greeted {
					continue
				}
				f.fired(m, c.id)
				line := noises[m.rand.IntN(len(noises))]
				m.do(Raw{Conn: c.id, Bytes: []byte(line + "\n"), Repeat: count})
			}
		})
	}},
	"stderr-flood": flood(true),
	"endless-line": flood(false),
	"huge-line": {ran: func(m *machine, f *fault, c *conn, _ *call, a *answer) bool {
		if f.strikes(m) {
			f.fired(m, c.id)
			a.pad = max(a.pad, f.with.Int("size"))
		}
		return false
	}},
	"half-line": {
		answer: func(m *machine, f *fault, c *conn, a *answer) bool {
			if partOf(a.q.Method) != calling || len(c.mutedBy) > 0 || !f.strikes(m) {
				return false
			}
			f.fired(m, c.id)
			body := append(m.body(a, c.era), '\n')
			half := len(body) / 2
			m.say(c, Raw{Conn: c.id, Bytes: body[:half]})
			switch f.with.Text("then") {
			case "exit":
				m.crash(c, 1)
			case "next": // the answer comes whole, in the line that has begun
				m.say(c, Send{Conn: c.id, Reply: string(a.q.ID), Body: body[:len(body)-1]})
			default:
				c.mutedBy = append(c.mutedBy, f)
				c.unsaid = append(c.unsaid, Raw{Conn: c.id, Bytes: body[half:]})
			}
			return true
		},
		end: func(m *machine, f *fault) { m.release(f) },
	},
	"duplicate-response": {answer: func(m *machine, f *fault, c *conn, a *answer) bool {
		if partOf(a.q.Method) == calling && a.status == 0 && f.strikes(m) {
			f.fired(m, c.id)
			a.again = true
		}
		return false
	}},
	"unknown-response": {answer: func(m *machine, f *fault, c *conn, a *answer) bool {
		if partOf(a.q.Method) == calling && a.status == 0 && f.strikes(m) {
			f.fired(m, c.id)
			f.times++
			id := strconv.Itoa(1_000_000_000 + f.times)
			m.say(c, Send{
				Conn: c.id, Reply: string(a.q.ID), More: true,
				Body: []byte(`{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","content":[]}}`),
			})
		}
		return false
	}},
	"late-response": {
		called: func(m *machine, f *fault, c *conn, k *call) bool {
			if !f.strikes(m) {
				return false
			}
			f.hold(c, func() { m.begin(c, k) })
			k.heldBy = f
			return true
		},
		cancelled: func(m *machine, f *fault, c *conn, k *call) bool {
			if k.heldBy != f {
				return false
			}
			k.heldBy = nil
			m.after(c, f.with.Duration("by"), func() {
				if !k.over {
					f.fired(m, c.id)
					m.run(c, k)
				}
			})
			return true
		},
		end: letGo,
	},
}

// noises are what programs write to their standard output that should have gone elsewhere.
var noises = []string{
	"Debugger listening on ws://127.0.0.1:9229/0f2c936f-b1cd-4ac9-aab3-f63b0f33d55e",
	"npm warn deprecated inflight@1.0.6: This module is not supported",
	"[2026-07-28T12:00:00.000Z] INFO server started on stdio",
	"(node:4711) ExperimentalWarning: SQLite is an experimental feature",
	"{not json at all",
	"{\"level\":\"info\",\"msg\":\"structured, but no message\"}",
	"Traceback (most recent call last):",
	"████████████████████ 100%",
}

// flood writes without end, to standard error in lines or to standard output in one line.
func flood(stderr bool) hooks {
	const block = 64 << 10
	line := bytes.Repeat([]byte{'x'}, 1024)
	if stderr {
		line[1023] = '\n'
	}
	lines := bytes.Repeat(line, block/len(line))
	return hooks{
		begin: func(m *machine, f *fault) {
			f.every(m, func() {
				for _, c := range m.connections() {
					if !c.free() {
						continue
					}
					f.fired(m, c.id)
					f.perConn[c.id]++
					times := max(f.with.Int("bytes")/block, 1)
					m.do(Raw{Conn: c.id, Bytes: lines, Repeat: times, Stderr: stderr})
				}
			})
		},
		end: func(m *machine, f *fault) {
			for _, c := range m.connections() {
				if !stderr && f.perConn[c.id] > 0 {
					m.say(c, Raw{Conn: c.id, Bytes: []byte("\n")})
				}
			}
		},
	}
}
