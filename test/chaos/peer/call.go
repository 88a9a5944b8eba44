package peer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// mostPad bounds what a caller can ask for.
const mostPad = 64 << 20

// call is one tool call that waits for its turn.
type call struct {
	q    *message
	tool tool
	// id is what the caller calls it, size how much padding it wants.
	id    string
	size  int
	token int
	// value is what came of it.
	value int
	// heldBy is the fault that lets it wait for its cancellation.
	heldBy *fault
	// begun says that it has its turn: it waits no longer than an answer takes.
	begun bool
	// over says that it has run, or that the client does not want it any more.
	over bool
}

// call begins tools/call.
func (m *machine) call(c *conn, q *message) {
	var p struct {
		Name      string `json:"name"`
		Arguments struct {
			Call string `json:"call"`
			Size int    `json:"size"`
		} `json:"arguments"`
	}
	if err := json.Unmarshal(q.Params, &p); err != nil {
		m.later(c, q, func() { m.refuse(c, q, codeInvalidParams, "Invalid params", "") })
		return
	}
	k := &call{q: q, id: p.Arguments.Call, size: min(max(p.Arguments.Size, 0), mostPad)}
	var ok bool
	if k.tool, ok = m.find(p.Name); !ok {
		m.later(c, q, func() { m.refuse(c, q, codeInvalidParams, "Unknown tool: "+p.Name, "") })
		return
	}
	c.calls = append(c.calls, k)
	if m.asTask(c, q) {
		k.token = m.later(c, q, func() {
			if !k.over {
				m.beginTask(c, k)
			}
		})
		return
	}
	m.callOn(c, k)
}

// callOn lets the faults see a call that has come, and begins it.
func (m *machine) callOn(c *conn, k *call) {
	for _, f := range slices.Clone(m.faults) {
		if f.hooks.called != nil && f.hooks.called(m, f, c, k) {
			return
		}
	}
	if !m.question(c, k) {
		m.begin(c, k)
	}
}

// begin lets a call run when it has taken its time.
func (m *machine) begin(c *conn, k *call) {
	if k.over || k.begun {
		return
	}
	k.begun = true
	if k.q.task != nil {
		k.token = m.after(c, m.about(taskTime), func() { m.run(c, k) })
		return
	}
	k.token = m.later(c, k.q, func() { m.run(c, k) })
}

// run lets a tool do what it does, and answers.
func (m *machine) run(c *conn, k *call) {
	if k.over {
		return
	}
	c.done(k)
	for _, f := range slices.Clone(m.faults) {
		if f.hooks.run != nil && f.hooks.run(m, f, c, k) {
			return
		}
	}
	m.execute(c, k)
	a := &answer{q: k.q, pad: k.size, structured: `{"value":` + strconv.Itoa(k.value) + `}`}
	for _, f := range slices.Clone(m.faults) {
		if m.over(c) || f.hooks.ran != nil && f.hooks.ran(m, f, c, k, a) {
			return
		}
	}
	a.result = m.output(c, k, a)
	m.answer(c, a)
}

// execute is the tool's effect on the world.
func (m *machine) execute(c *conn, k *call) {
	m.values[k.tool.name]++
	k.value = m.values[k.tool.name]
	m.note(history.Event{Kind: history.Executed, Conn: c.id, Tool: k.tool.name, Call: k.id, Value: k.value})
}

// output is the result of a call that has run: where, and what came of it.
func (m *machine) output(c *conn, k *call, a *answer) []byte {
	text := quote(`{"call":` + quote(k.id) + `,"server":` + quote(m.cfg.Server.Name) + `,"conn":` + strconv.Itoa(c.id) +
		`,"tool":` + quote(k.tool.name) + `,"value":` + strconv.Itoa(k.value) + `,"pad":"`)
	b := make([]byte, 0, len(text)+a.pad+256)
	b = append(b, `{"content":[{"type":"text","text":`...)
	b = append(b, text[:len(text)-1]...)
	b = append(b, bytes.Repeat([]byte{'x'}, a.pad)...)
	b = append(b, `\"}"}`...)
	for _, more := range a.more {
		b = append(b, `,{"type":"text","text":`+quote(more)+`}`...)
	}
	b = append(b, ']')
	if !a.isError {
		b = append(b, `,"structuredContent":`+a.structured...)
	}
	return append(b, `,"isError":`+strconv.FormatBool(a.isError)+`}`...)
}

// done takes a call from those that wait.
func (c *conn) done(k *call) {
	k.over = true
	c.calls = slices.DeleteFunc(c.calls, func(o *call) bool { return o == k })
}

// cancelled takes notifications/cancelled.
func (m *machine) cancelled(c *conn, q *message) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(q.Params, &p) == nil {
		m.cancel(c, string(p.RequestID))
	}
}

// cancel ends a call that waits, or a subscription. Whatever is not there has been answered already.
//
// 2025-11-25: receivers of a cancellation SHOULD stop processing the cancelled request and not send a response for it.
func (m *machine) cancel(c *conn, id string) {
	c.listens = slices.DeleteFunc(c.listens, func(l *listen) bool { return string(l.id) == id })
	i := slices.IndexFunc(c.calls, func(k *call) bool { return string(k.q.ID) == id })
	if i < 0 {
		m.forget(c.asked[id])
		delete(c.asked, id)
		return
	}
	k := c.calls[i]
	for _, f := range slices.Clone(m.faults) {
		if f.hooks.cancelled != nil && f.hooks.cancelled(m, f, c, k) {
			return
		}
	}
	m.forget(k.token)
	c.done(k)
}
