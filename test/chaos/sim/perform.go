package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/transports"
)

// perform does what a machine has asked for: at once, or at its time. What is returned together with one delay happens at
// one time, in order.
func (h *host) perform(actions []peer.Action) {
	var jitters [4]time.Duration // of the delays of this turn
	var delays [4]time.Duration
	known := 0
	for _, a := range actions {
		after := delayOf(a)
		if after <= 0 {
			h.act(a)
			continue
		}
		jitter := time.Duration(0)
		for i := range known {
			if delays[i] == after {
				jitter = jitters[i]
			}
		}
		if jitter == 0 {
			jitter = h.jitter()
			if known < len(delays) {
				delays[known], jitters[known] = after, jitter
				known++
			}
		}
		h.w.line.plan(h.w.now()+after+jitter, h.server.Name, func() { h.act(a) })
	}
}

// delayOf is when an action is to be done. What is dripped has arrived with its last byte.
func delayOf(a peer.Action) time.Duration {
	switch a := a.(type) {
	case peer.Send:
		return a.After + drip(len(a.Body), a.Chunk, a.Every)
	case peer.Raw:
		return a.After
	case peer.Status:
		return a.After
	case peer.Cut:
		return a.After
	case peer.Accept:
		return a.After
	case peer.Reject:
		return a.After
	case peer.Exit:
		return a.After
	case peer.Stop:
		return a.After
	case peer.Deafen:
		return a.After
	case peer.Wait:
		return a.After
	}
	return 0
}

func drip(size, chunk int, every time.Duration) time.Duration {
	if chunk <= 0 || every <= 0 || size <= chunk {
		return 0
	}
	return time.Duration((size-1)/chunk) * every
}

// act does one action now.
func (h *host) act(a peer.Action) {
	switch a := a.(type) {
	case peer.Note:
		e := a.Event
		e.Server = h.server.Name
		if e.Side == "" {
			e.Side = history.World
		}
		h.w.record(e)
	case peer.Wait:
		h.perform(h.machine.Wake(h.w.now(), a.Token))
	case peer.Accept:
		if l := h.conns[a.Conn]; l != nil {
			h.accept(l, a)
		}
	case peer.Reject:
		if l := h.conns[a.Conn]; l != nil {
			h.reject(l, a)
		}
	case peer.Send:
		if l := h.open(a.Conn); l != nil {
			h.send(l, a)
		}
	case peer.Raw:
		if l := h.open(a.Conn); l != nil {
			h.write(l, a)
		}
	case peer.Status:
		if l := h.conns[a.Conn]; l != nil {
			h.status(l, a)
		}
	case peer.Cut:
		if l := h.open(a.Conn); l != nil {
			h.cut(l, a.Reply)
		}
	case peer.Exit:
		if l := h.open(a.Conn); l != nil {
			h.exit(l, a)
		}
	case peer.Stop:
		if l := h.open(a.Conn); l != nil {
			l.hear(a.Resume)
			h.w.moved = true
		}
	case peer.Deafen:
		if l := h.open(a.Conn); l != nil {
			l.hear(a.Hear)
			h.w.moved = true
		}
	case peer.Hold:
		if l := h.conns[a.Conn]; l != nil {
			l.base().hold()
		}
	case peer.Spawn, peer.Hide: // only real processes
	}
}

// open is a connection on which the server can still do something. Over HTTP one that has ended goes on, with the answers
// of a server that was started again.
func (h *host) open(number int) *line {
	l := h.conns[number]
	if l == nil || !l.accepted || l.ended && h.server.Kind != messages.HTTP {
		return nil
	}
	return l
}

func (h *host) accept(l *line, a peer.Accept) {
	if l.accepted || l.refused {
		return
	}
	h.w.moved = true
	if !l.accept(a.Session) {
		h.machine.Killed(h.w.now(), l.number) // nobody waits for it any more
		h.forget(l)
		return
	}
	l.accepted = true
	h.note(history.Event{Kind: history.Opened, Conn: l.number})
}

func (h *host) reject(l *line, a peer.Reject) {
	if l.accepted || l.refused {
		return
	}
	err, delivery := h.rejection(a)
	l.refused = true
	h.w.moved = true
	h.note(history.Event{Kind: history.Refused, Conn: l.number, Class: err.Class, RetryAfter: err.RetryAfter})
	l.refuse(err, delivery)
	if h.server.Kind != messages.HTTP {
		h.forget(l)
	}
}

// rejection is the error of a dial that was refused.
func (h *host) rejection(a peer.Reject) (*transports.Error, transports.Delivery) {
	if a.Code != 0 {
		return h.refusal(a.Code, a.RetryAfter, a.Header, []byte(a.Text), false), transports.Written
	}
	class, text := a.Class, a.Text
	if class == "" {
		class = messages.ClassNetwork
	}
	if text == "" {
		text = h.label() + " refused the connection"
	}
	return &transports.Error{Class: class, Text: text, RetryAfter: a.RetryAfter}, transports.NotWritten
}

// refusal is the error of an HTTP status.
func (h *host) refusal(code int, retryAfter time.Duration, header map[string]string, body []byte, session bool) *transports.Error {
	resp := &http.Response{StatusCode: code, Header: http.Header{}}
	for name, value := range header {
		resp.Header.Set(name, value)
	}
	if retryAfter > 0 {
		resp.Header.Set("Retry-After", strconv.Itoa(int((retryAfter+time.Second-1)/time.Second)))
	}
	return transports.Refused(h.label(), resp, []byte(h.spec.Hide(string(body))), session)
}

func (h *host) send(l *line, a peer.Send) {
	h.w.moved = true
	switch {
	case a.Cut > 0:
		h.tear(l, a)
		return
	case a.Type != "" && a.Reply != "" && h.server.Kind == messages.HTTP:
		h.answered(l, a.Reply, 0, 0)
		l.deny(a.Reply, transports.Written, &transports.Error{Class: messages.ClassProtocol, Status: http.StatusOK,
			Text: h.label() + " answered with " + messages.Line(a.Type, 60) + " instead of JSON or an event stream",
			Fix:  "check that the URL is an MCP endpoint"})
		return
	}
	if l.give(a.Body, a.Reply, a.More) && a.Reply != "" && !a.More {
		if isTask(a.Body) {
			h.begun(l, a.Reply)
			return
		}
		h.answered(l, a.Reply, codeOf(a.Body), 0)
	}
}

// begun records that a call has become a task: its request was answered, and the call was not.
func (h *host) begun(l *line, id string) {
	if r, ok := l.asked[id]; ok && r.method == "tools/call" {
		r.call = ""
		l.asked[id] = r
	}
	h.answered(l, id, 0, 0)
}

// tear delivers a part of a message and ends what carries it.
func (h *host) tear(l *line, a peer.Send) {
	if h.server.Kind == messages.HTTP {
		h.cut(l, a.Reply)
		return
	}
	if h.server.Kind == messages.Stdio {
		l.raw(a.Body[:min(a.Cut, len(a.Body))])
	}
	h.down(l, ending{err: h.broken()}, 0)
	h.machine.Killed(h.w.now(), l.number)
}

// cut ends the response to a request, or the stream for what is said unasked.
func (h *host) cut(l *line, reply string) {
	h.w.moved = true
	if reply == "" {
		l.cut()
		return
	}
	delete(l.asked, reply)
	l.deny(reply, transports.MaybeWritten, &transports.Error{Class: messages.ClassNetwork,
		Text: h.label() + " broke the stream before the answer came"})
}

// answered records the answer to a request, once.
func (h *host) answered(l *line, id string, code int, retryAfter time.Duration) {
	r, ok := l.asked[id]
	delete(l.asked, id)
	if !ok && id != "" {
		return
	}
	h.note(history.Event{Kind: history.Answered, Conn: l.number, Method: r.method, ID: r.id, Call: r.call, Code: code,
		RetryAfter: retryAfter})
}

func (h *host) status(l *line, a peer.Status) {
	h.w.moved = true
	if a.Code == 0 {
		delete(l.asked, a.Reply)
		l.deny(a.Reply, transports.MaybeWritten, h.broken())
		return
	}
	session := l.base().sessionID() != ""
	err := h.refusal(a.Code, a.RetryAfter, a.Header, a.Body, session)
	if l.deny(a.Reply, transports.Written, err) {
		h.answered(l, a.Reply, a.Code, err.RetryAfter)
	}
	if err.Class == messages.ClassSession && !l.ended {
		l.ended = true
		h.machine.Killed(h.w.now(), l.number)
		h.note(history.Event{Kind: history.Down, Conn: l.number, Class: err.Class, Text: err.Text})
	}
}

// write is output that is no message.
func (h *host) write(l *line, a peer.Raw) {
	h.w.moved = true
	p, isPipe := l.conn.(*pipe)
	if a.Stderr {
		if isPipe {
			p.complain(a.Bytes)
		}
		return
	}
	if a.Chunk > 0 && a.Every > 0 {
		h.drip(l, a)
		return
	}
	for range max(a.Repeat, 1) {
		l.raw(a.Bytes)
	}
}

// drip writes a part and plans the rest.
func (h *host) drip(l *line, a peer.Raw) {
	all := a.Bytes
	if a.Repeat > 1 {
		all = bytes.Repeat(all, a.Repeat)
	}
	part := all[:min(a.Chunk, len(all))]
	l.raw(part)
	if rest := all[len(part):]; len(rest) > 0 {
		a.Bytes, a.Repeat = rest, 0
		h.w.line.plan(h.w.now()+a.Every+h.jitter(), h.server.Name, func() { h.act(a) })
	}
}

// exit ends the server's side.
func (h *host) exit(l *line, a peer.Exit) {
	h.w.moved = true
	if a.HalfOpen {
		l.hear(false)
		return
	}
	e := ending{}
	switch {
	case h.server.Kind == messages.Stdio && a.Text != "":
		e.text = "signal: " + signalName(a.Text)
		e.err = &transports.Error{Class: messages.ClassExited, Text: "the process was ended by the signal " + signalName(a.Text)}
	case h.server.Kind == messages.Stdio:
		e.text = fmt.Sprintf("exit status %d", a.Code)
		e.err = &transports.Error{Class: messages.ClassExited, Text: "the process ended with " + e.text}
	case h.server.Kind == messages.SDK:
		e.err = &transports.Error{Class: messages.ClassExited, Text: "the in-process server returned"}
	case a.Reset:
		e.err = h.broken()
	default:
		e.err = &transports.Error{Class: messages.ClassNetwork, Text: h.label() + " closed the connection"}
	}
	h.down(l, e, 0)
}

// signalName is how the system names a signal.
func signalName(name string) string {
	switch name {
	case "KILL":
		return "killed"
	case "TERM":
		return "terminated"
	case "SEGV":
		return "segmentation fault"
	}
	return name
}

// isTask says that a message is the answer to a call that has become a task.
func isTask(body []byte) bool {
	return bytes.Contains(body, []byte(`"taskId":"`)) && !bytes.Contains(body, []byte(`"content":[`))
}

// callOf is the id of a call that the arguments of a tool carry.
func callOf(body []byte) string { return word(body, `"call":"`, '"') }

// codeOf is the code of an answer that is a JSON-RPC error, 0 for a result.
func codeOf(body []byte) int {
	if !bytes.Contains(body, []byte(`"error"`)) {
		return 0
	}
	var m struct {
		Error *struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &m) != nil || m.Error == nil {
		return 0
	}
	return cmp.Or(m.Error.Code, -1) // an error of the code 0 is no result
}
