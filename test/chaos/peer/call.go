package peer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// maxPadding bounds what a caller can ask for.
const maxPadding = 64 << 20

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
	// scheduled says that it has its turn: it waits no longer than an answer takes.
	scheduled bool
	// finished says that it has run, or that the client does not want it any more.
	finished bool
}

// startCall begins tools/call.
func (m *machine) startCall(c *conn, q *message) {
	var p struct {
		Name      string `json:"name"`
		Arguments struct {
			Call string `json:"call"`
			Size int    `json:"size"`
		} `json:"arguments"`
	}
	if err := json.Unmarshal(q.Params, &p); err != nil {
		m.scheduleAnswer(c, q, func() { m.answerError(c, q, codeInvalidParams, "Invalid params", "") })
		return
	}
	k := &call{q: q, id: p.Arguments.Call, size: min(max(p.Arguments.Size, 0), maxPadding)}
	var ok bool
	if k.tool, ok = m.findTool(p.Name); !ok {
		m.scheduleAnswer(c, q, func() { m.answerError(c, q, codeInvalidParams, "Unknown tool: "+p.Name, "") })
		return
	}
	c.waitingCalls = append(c.waitingCalls, k)
	if m.becomesTask(c, q) {
		k.token = m.scheduleAnswer(c, q, func() {
			if !k.finished {
				m.beginTask(c, k)
			}
		})
		return
	}
	m.dispatchCall(c, k)
}

// dispatchCall lets the faults see a call that has come, and begins it.
func (m *machine) dispatchCall(c *conn, k *call) {
	for _, f := range slices.Clone(m.activeFaults) {
		if f.hooks.onCall != nil && f.hooks.onCall(m, f, c, k) {
			return
		}
	}
	if !m.askBeforeCall(c, k) {
		m.scheduleCall(c, k)
	}
}

// scheduleCall lets a call run when it has taken its time.
func (m *machine) scheduleCall(c *conn, k *call) {
	if k.finished || k.scheduled {
		return
	}
	k.scheduled = true
	if k.q.task != nil {
		k.token = m.scheduleAfter(c, m.drawAround(taskTime), func() { m.runCall(c, k) })
		return
	}
	k.token = m.scheduleAnswer(c, k.q, func() { m.runCall(c, k) })
}

// runCall lets a tool do what it does, and answers.
func (m *machine) runCall(c *conn, k *call) {
	if k.finished {
		return
	}
	c.finishCall(k)
	for _, f := range slices.Clone(m.activeFaults) {
		if f.hooks.beforeRun != nil && f.hooks.beforeRun(m, f, c, k) {
			return
		}
	}
	m.executeTool(c, k)
	a := &answer{q: k.q, pad: k.size, structured: `{"value":` + strconv.Itoa(k.value) + `}`}
	for _, f := range slices.Clone(m.activeFaults) {
		if m.isEnded(c) || f.hooks.afterRun != nil && f.hooks.afterRun(m, f, c, k, a) {
			return
		}
	}
	a.result = m.encodeCallResult(c, k, a)
	m.sendAnswer(c, a)
}

// executeTool is the tool's effect on the world.
func (m *machine) executeTool(c *conn, k *call) {
	m.runCounts[k.tool.name]++
	k.value = m.runCounts[k.tool.name]
	m.recordEvent(history.Event{Kind: history.Executed, Conn: c.id, Tool: k.tool.name, Call: k.id, Value: k.value})
}

// encodeCallResult is the result of a call that has run: where, and what came of it.
func (m *machine) encodeCallResult(c *conn, k *call, a *answer) []byte {
	text := quoteJSON(`{"call":` + quoteJSON(k.id) + `,"server":` + quoteJSON(m.cfg.Server.Name) + `,"conn":` + strconv.Itoa(c.id) +
		`,"tool":` + quoteJSON(k.tool.name) + `,"value":` + strconv.Itoa(k.value) + `,"pad":"`)
	b := make([]byte, 0, len(text)+a.pad+256)
	b = append(b, `{"content":[{"type":"text","text":`...)
	b = append(b, text[:len(text)-1]...)
	b = append(b, bytes.Repeat([]byte{'x'}, a.pad)...)
	b = append(b, `\"}"}`...)
	for _, more := range a.extraTexts {
		b = append(b, `,{"type":"text","text":`+quoteJSON(more)+`}`...)
	}
	b = append(b, ']')
	if !a.isError {
		b = append(b, `,"structuredContent":`+a.structured...)
	}
	return append(b, `,"isError":`+strconv.FormatBool(a.isError)+`}`...)
}

// finishCall takes a call from those that wait.
func (c *conn) finishCall(k *call) {
	k.finished = true
	c.waitingCalls = slices.DeleteFunc(c.waitingCalls, func(o *call) bool { return o == k })
}

// handleCancelled takes notifications/cancelled.
func (m *machine) handleCancelled(c *conn, q *message) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(q.Params, &p) == nil {
		m.cancelRequest(c, string(p.RequestID))
	}
}

// cancelRequest ends a call that waits, or a subscription. Whatever is not there has been answered already.
//
// 2025-11-25: receivers of a cancellation SHOULD stop processing the cancelled request and not send a response for it.
func (m *machine) cancelRequest(c *conn, id string) {
	c.streams = slices.DeleteFunc(c.streams, func(l *subscriptionStream) bool { return string(l.id) == id })
	i := slices.IndexFunc(c.waitingCalls, func(k *call) bool { return string(k.q.ID) == id })
	if i < 0 {
		m.cancelScheduled(c.requestTokens[id])
		delete(c.requestTokens, id)
		return
	}
	k := c.waitingCalls[i]
	for _, f := range slices.Clone(m.activeFaults) {
		if f.hooks.onCancel != nil && f.hooks.onCancel(m, f, c, k) {
			return
		}
	}
	m.cancelScheduled(k.token)
	c.finishCall(k)
}
