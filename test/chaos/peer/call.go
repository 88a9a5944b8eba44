package peer

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

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
	// held says that a fault holds it back; cancelled, that the client does not want it any more.
	held, cancelled bool
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
	for _, f := range m.faults {
		if f.hooks.called != nil && f.hooks.called(m, f, c, k) {
			return
		}
	}
	// The token may be known only after the call has run, if there is nothing to wait for.
	k.token = m.later(c, q, func() { m.run(c, k) })
}

// run lets a tool do what it does, and answers.
func (m *machine) run(c *conn, k *call) {
	c.done(k)
	for _, f := range m.faults {
		if f.hooks.run != nil && f.hooks.run(m, f, c, k) {
			return
		}
	}
	value := m.execute(c, k)
	a := &answer{q: k.q, result: []byte(m.output(c, k, value, k.size))}
	for _, f := range m.faults {
		if f.hooks.ran != nil && !m.over(c) && f.hooks.ran(m, f, c, k, a) {
			return
		}
	}
	m.answer(c, a)
}

// execute is the tool's effect on the world.
func (m *machine) execute(c *conn, k *call) (value int) {
	m.values[k.tool.name]++
	value = m.values[k.tool.name]
	m.note(history.Event{
		Kind: history.Executed, Conn: c.id, Tool: k.tool.name, Call: k.id, Value: value,
	})
	return value
}

// output is the result of a call.
func (m *machine) output(c *conn, k *call, value, size int) string {
	text := `{"call":` + quote(k.id) + `,"server":` + quote(m.cfg.Server.Name) + `,"conn":` + strconv.Itoa(c.id) +
		`,"tool":` + quote(k.tool.name) + `,"value":` + strconv.Itoa(value) + `,"pad":"` + strings.Repeat("x", size) + `"}`
	return `{"content":[{"type":"text","text":` + quote(text) + `}],"structuredContent":{"value":` + strconv.Itoa(value) +
		`},"isError":false}`
}

func (c *conn) done(k *call) {
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
		return
	}
	k := c.calls[i]
	for _, f := range m.faults {
		if f.hooks.cancelled != nil && f.hooks.cancelled(m, f, c, k) {
			return
		}
	}
	k.cancelled = true
	m.forget(k.token)
	c.done(k)
}
