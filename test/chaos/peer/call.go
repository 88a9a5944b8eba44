package peer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// maxPadding bounds the padding that a caller can ask for, in bytes, so that a wrong argument does not exhaust the memory of
// the run.
const maxPadding = 64 << 20

// call is one tool call from its arrival until its tool has run or the client has cancelled it.
type call struct {
	q    *message
	tool tool
	// id is the argument by which the harness recognises the call, size the padding in bytes that it wants in the result, token
	// that of its wait.
	id    string
	size  int
	token int
	// value counts the runs of the tool up to this one; it is set when the tool runs.
	value int
	// heldBy is the fault late-response while it waits for the cancellation of this call.
	heldBy *fault
	// scheduled is set once the run of the call has a time, so that a second release by another fault does not run it twice.
	scheduled bool
	// finished is set once the tool has run or the client has cancelled the call.
	finished bool
}

// startCall handles tools/call: it refuses bad params and unknown tools, and makes the call a task if the era's rules say so.
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

// dispatchCall shows a call that has arrived to the faults. If none of them takes it, and the server has no question for the
// caller, the call is scheduled.
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

// scheduleCall lets a call run after the server's latency, or after taskTime if it runs as a task. Faults that held the call
// call this too; the second and later calls do nothing.
func (m *machine) scheduleCall(c *conn, k *call) {
	if k.finished || k.scheduled {
		return
	}
	k.scheduled = true
	if k.q.task != nil {
		m.scheduleTask(c, k)
		return
	}
	k.token = m.scheduleAnswer(c, k.q, func() { m.runCall(c, k) })
}

// runCall runs the tool of a call and answers it. Faults may take the call before it runs, or take or change its answer after.
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
	m.logCall(c, k)
	a := &answer{q: k.q, pad: k.size, structured: `{"value":` + strconv.Itoa(k.value) + `}`}
	for _, f := range slices.Clone(m.activeFaults) {
		if m.isEnded(c) || f.hooks.afterRun != nil && f.hooks.afterRun(m, f, c, k, a) {
			return
		}
	}
	a.result = m.encodeCallResult(c, k, a)
	m.sendAnswer(c, a)
}

// executeTool counts a run of the tool and records Executed. The count is the value that the caller later compares with the
// runs it knows of.
func (m *machine) executeTool(c *conn, k *call) {
	m.runCounts[k.tool.name]++
	k.value = m.runCounts[k.tool.name]
	m.recordEvent(history.Event{Kind: history.Executed, Conn: c.id, Tool: k.tool.name, Call: k.id, Value: k.value})
}

// encodeCallResult encodes the result of a call that has run. Its first text is a JSON object that names the call, server,
// connection, tool and value, so that the harness can see a result that reached the wrong caller.
func (m *machine) encodeCallResult(c *conn, k *call, a *answer) []byte {
	text := quoteJSON(`{"call":` + quoteJSON(k.id) + `,"server":` + quoteJSON(m.cfg.Server.Name) + `,"conn":` + strconv.Itoa(c.id) +
		`,"tool":` + quoteJSON(k.tool.name) + `,"value":` + strconv.Itoa(k.value) + `,"pad":"`)
	b := make([]byte, 0, len(text)+a.pad+256)
	b = append(b, `{"content":[{"type":"text","text":`...)
	// The padding goes in unquoted, because it may be 64 MB long and x needs no escape; then the inner string and object end.
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

// finishCall takes a call out of those that wait.
func (c *conn) finishCall(k *call) {
	k.finished = true
	c.waitingCalls = slices.DeleteFunc(c.waitingCalls, func(o *call) bool { return o == k })
}

// handleCancelled handles notifications/cancelled.
func (m *machine) handleCancelled(c *conn, q *message) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(q.Params, &p) == nil {
		m.cancelRequest(c, string(p.RequestID))
	}
}

// cancelRequest cancels a call, a subscription or another scheduled answer. An unknown id belongs to a request that was
// answered already, and is ignored.
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
