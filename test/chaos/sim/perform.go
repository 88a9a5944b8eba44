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
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// performActions performs what a machine has returned: at once, or at its time. Actions of one turn with equal delays get the
// same addition to it, so that they happen at one time and in order.
func (h *simServer) performActions(actions []peer.Action) {
	// The additions by delay. A turn rarely has more than four different delays; further ones each draw their own.
	var jitters [4]time.Duration
	var delays [4]time.Duration
	known := 0
	for _, a := range actions {
		after := delayOf(a)
		if after <= 0 {
			h.performAction(a)
			continue
		}
		jitter := time.Duration(0)
		for i := range known {
			if delays[i] == after {
				jitter = jitters[i]
			}
		}
		if jitter == 0 {
			jitter = h.nextJitter()
			if known < len(delays) {
				delays[known], jitters[known] = after, jitter
				known++
			}
		}
		h.w.timeline.planAction(h.w.currentTime()+after+jitter, h.server.Name, func() { h.performAction(a) })
	}
}

// delayOf returns the time until an action is performed. A slowed message is delivered whole when its last byte would arrive.
func delayOf(a peer.Action) time.Duration {
	switch a := a.(type) {
	case peer.Send:
		return a.After + a.DripTime()
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
	case peer.PauseReading:
		return a.After
	case peer.Wait:
		return a.After
	}
	return 0
}

// performAction performs one action now. An action for a connection that cannot be used any more is dropped, as the machine
// expects.
func (h *simServer) performAction(a peer.Action) {
	switch a := a.(type) {
	case peer.Note:
		e := a.Event
		if h.record != nil {
			if e.Kind == history.Notified { // of the rest its judges know enough by what the server has received
				h.record(e)
			}
			return
		}
		e.Server = h.server.Name
		if e.Side == "" {
			e.Side = history.World
		}
		h.w.recordEvent(e)
	case peer.Wait:
		h.performActions(h.machine.Wake(h.w.currentTime(), a.Token))
	case peer.Accept:
		if l := h.conns[a.Conn]; l != nil {
			h.acceptConn(l, a)
		}
	case peer.Reject:
		if l := h.conns[a.Conn]; l != nil {
			h.rejectConn(l, a)
		}
	case peer.Send:
		if l := h.usableConn(a.Conn); l != nil {
			h.sendMessage(l, a)
		}
	case peer.Raw:
		if l := h.usableConn(a.Conn); l != nil {
			h.writeRaw(l, a)
		}
	case peer.Status:
		if l := h.conns[a.Conn]; l != nil {
			h.sendStatus(l, a)
		}
	case peer.Cut:
		if l := h.usableConn(a.Conn); l != nil {
			h.cutStream(l, a.Reply)
		}
	case peer.Exit:
		if l := h.usableConn(a.Conn); l != nil {
			h.performExit(l, a)
		}
	case peer.Stop:
		if l := h.usableConn(a.Conn); l != nil {
			l.setReading(a.Resume)
			h.w.needsWait = true
		}
	case peer.PauseReading:
		if l := h.usableConn(a.Conn); l != nil {
			l.setReading(a.Resume)
			h.w.needsWait = true
		}
	case peer.Hold:
		if l := h.conns[a.Conn]; l != nil {
			l.base().holdOpening()
		}
	case peer.Busy:
		if l := h.conns[a.Conn]; l != nil {
			l.base().setBusy(a.Runs, a.Waits)
		}
	// Only real processes can do these.
	case peer.Spawn, peer.BlockStart:
	}
}

// usableConn returns a connection on which the server can still act, nil if there is none. Over HTTP an ended connection goes
// on, with the answers of a server that was started again.
func (h *simServer) usableConn(number int) *simConn {
	l := h.conns[number]
	if l == nil || !l.accepted || l.ended && h.server.Kind != messages.HTTP {
		return nil
	}
	return l
}

// acceptConn opens a connection. If the client has given up in the same instant, the machine learns that the connection is
// gone.
func (h *simServer) acceptConn(l *simConn, a peer.Accept) {
	if l.accepted || l.refused {
		return
	}
	h.w.needsWait = true
	if !l.acceptOpening(a.Session) {
		// The client waits no longer.
		h.machine.Killed(h.w.currentTime(), l.number)
		h.forgetConn(l)
		return
	}
	l.accepted = true
	h.recordEvent(history.Event{Kind: history.Opened, Conn: l.number})
}

// rejectConn refuses a dial. Over HTTP the connection stays listed, because the client may send further messages on it, which
// meet the same refusal.
func (h *simServer) rejectConn(l *simConn, a peer.Reject) {
	if l.accepted || l.refused {
		return
	}
	err, delivery := h.rejectionError(a)
	if own, ok := ownWebOf(l); ok && a.Code != 0 {
		own.prepareRefusal(a.Code, a.RetryAfter, a.Header, []byte(a.Text))
	}
	l.refused = true
	h.w.needsWait = true
	h.recordEvent(history.Event{Kind: history.Refused, Conn: l.number, Class: err.Class, RetryAfter: err.RetryAfter})
	l.refuseOpening(err, delivery)
	if h.server.Kind != messages.HTTP {
		h.forgetConn(l)
	}
}

// rejectionError returns the error of a refused dial, and how far a message got over HTTP that belonged to it.
func (h *simServer) rejectionError(a peer.Reject) (*transports.Error, transports.Delivery) {
	if a.Code != 0 {
		return h.refusalError(a.Code, a.RetryAfter, a.Header, []byte(a.Text), false), transports.Written
	}
	class, text := a.Class, a.Text
	if class == "" {
		class = messages.ClassNetwork
	}
	if text == "" {
		text = h.serverLabel() + " refused the connection"
	}
	return &transports.Error{Class: class, Text: text, RetryAfter: a.RetryAfter}, transports.NotWritten
}

// refusalError returns the error of an HTTP status, made by the function of the real transports, with the secrets removed.
func (h *simServer) refusalError(code int, retryAfter time.Duration, header map[string]string, body []byte, session bool) *transports.Error {
	resp := &http.Response{StatusCode: code, Header: http.Header{}}
	for name, value := range header {
		resp.Header.Set(name, value)
	}
	if retryAfter > 0 {
		resp.Header.Set("Retry-After", strconv.Itoa(int((retryAfter+time.Second-1)/time.Second)))
	}
	return web.RefusalError(h.serverLabel(), resp, []byte(h.spec.RedactText(string(body))), session)
}

// sendMessage delivers a message, or in its place the effect of a fault: a response that breaks off, or one with a wrong
// content type.
func (h *simServer) sendMessage(l *simConn, a peer.Send) {
	h.w.needsWait = true
	switch {
	case a.Cut > 0:
		h.sendTruncated(l, a)
		return
	case a.Type != "" && a.Reply != "" && h.server.Kind == messages.HTTP:
		leave := h.leaverAtAnswer(l, a.Reply)
		h.recordAnswer(l, a.Reply, 0, 0)
		leave()
		if own, ok := ownWebOf(l); ok {
			own.prepareRefusal(http.StatusOK, 0, map[string]string{"Content-Type": a.Type}, a.Body)
		}
		l.denyExchange(a.Reply, transports.Written, &transports.Error{Class: messages.ClassProtocol, Status: http.StatusOK,
			Text: h.serverLabel() + " answered with " + messages.Line(a.Type, 60) + " instead of JSON or an event stream",
			Fix:  "check that the URL is an MCP endpoint"})
		return
	}
	leave := h.leaverAtAnswer(l, a.Reply)
	if l.deliverMessage(a.Body, a.Reply, a.More) && a.Reply != "" && !a.More && h.recordBody(l, a.Reply, a.Body) {
		leave()
	}
}

// recordBody records the answer to a request, and reports whether what was asked for has ended with it: a call that becomes a task goes on.
func (h *simServer) recordBody(l *simConn, id string, body []byte) (ended bool) {
	if isTask(body) {
		h.recordTaskBegun(l, id, body)
		return false
	}
	h.recordAnswer(l, id, codeOf(body), 0)
	return true
}

// leaverAtAnswer returns what gives the call of a request up, if its caller does that when the call is answered.
func (h *simServer) leaverAtAnswer(l *simConn, id string) (leave func()) {
	return h.w.users.leaverAt(l.openRequests[id].call, load.WhenAnswered)
}

// recordTaskBegun records that the server answered a call's request with a task. The call itself is unanswered, so the event
// does not name it.
func (h *simServer) recordTaskBegun(l *simConn, id string, answer []byte) {
	if r, ok := l.openRequests[id]; ok && r.method == "tools/call" {
		r.call, r.task, r.expires = "", taskOf(answer), h.w.currentTime()+timeToLiveOf(answer)
		l.openRequests[id] = r
	}
	h.recordAnswer(l, id, 0, 0)
}

// sendTruncated delivers a part of a message and ends what carries it: the response over HTTP, elsewhere the connection.
func (h *simServer) sendTruncated(l *simConn, a peer.Send) {
	if own, ok := ownWebOf(l); ok && own.tearAnswer(a.Reply, a.Body, a.Cut) {
		h.judgeStreams(l, own)
		return
	}
	if h.server.Kind == messages.HTTP {
		h.cutStream(l, a.Reply)
		return
	}
	if h.server.Kind == messages.Stdio {
		l.deliverBytes(a.Body[:min(a.Cut, len(a.Body))])
	}
	h.endServerSide(l, ending{err: h.brokenError()}, 0)
	h.machine.Killed(h.w.currentTime(), l.number)
}

// openStream gives the program's own client the stream that it asks for. With the rest of a stream that broke it may have an answer.
func (h *simServer) openStream(l *simConn, x *exchange) {
	own, ok := ownWebOf(l)
	if !ok {
		return
	}
	h.w.needsWait = true
	reply, answer := own.openStream(x)
	h.judgeStreams(l, own)
	if answer != nil {
		leave := h.leaverAtAnswer(l, reply)
		if h.recordBody(l, reply, answer) {
			leave()
		}
	}
}

// cutStream ends the response to a request, or with an empty reply the stream for messages that belong to no request.
func (h *simServer) cutStream(l *simConn, reply string) {
	h.w.needsWait = true
	if reply == "" {
		l.cutStream()
		if own, ok := ownWebOf(l); ok {
			h.judgeStreams(l, own)
		}
		return
	}
	delete(l.openRequests, reply)
	l.denyExchange(reply, transports.MaybeWritten, &transports.Error{Class: messages.ClassNetwork,
		Text: h.serverLabel() + " broke the stream before the answer came"})
}

// recordAnswer records the answer to a request, once; a second answer (fault duplicate-response) is not recorded.
func (h *simServer) recordAnswer(l *simConn, id string, code int, retryAfter time.Duration) {
	r, ok := l.openRequests[id]
	delete(l.openRequests, id)
	if !ok && id != "" {
		return
	}
	h.recordEvent(history.Event{Kind: history.Answered, Conn: l.number, Method: r.method, ID: r.id, Call: r.call, Task: r.task, Code: code,
		Deadline: r.expires, RetryAfter: retryAfter})
}

// sendStatus refuses a message with an HTTP status, or with code 0 resets its socket. A refusal that says the session is lost
// ends the server's side in the record.
func (h *simServer) sendStatus(l *simConn, a peer.Status) {
	h.w.needsWait = true
	if a.Code == 0 {
		delete(l.openRequests, a.Reply)
		l.denyExchange(a.Reply, transports.MaybeWritten, h.brokenError())
		return
	}
	session := l.base().sessionID() != ""
	err := h.refusalError(a.Code, a.RetryAfter, a.Header, a.Body, session)
	leave := h.leaverAtAnswer(l, a.Reply)
	if own, ok := ownWebOf(l); ok {
		own.prepareRefusal(a.Code, a.RetryAfter, a.Header, a.Body)
	}
	if l.denyExchange(a.Reply, transports.Written, err) {
		h.recordAnswer(l, a.Reply, a.Code, err.RetryAfter)
		leave()
	}
	if err.Class == messages.ClassSession && !l.ended {
		l.ended = true
		h.machine.Killed(h.w.currentTime(), l.number)
		h.recordEvent(history.Event{Kind: history.Down, Conn: l.number, Class: err.Class, Text: err.Text})
	}
}

// writeRaw writes output that is no message. An answer that was cut in two is recorded with its second half.
func (h *simServer) writeRaw(l *simConn, a peer.Raw) {
	h.w.needsWait = true
	p, isPipe := l.conn.(*pipe)
	if a.Stderr {
		if isPipe {
			p.writeStderr(a.Bytes)
		}
		return
	}
	if a.Chunk > 0 && a.Every > 0 {
		h.dripRaw(l, a)
		return
	}
	for range max(a.Repeat, 1) {
		l.deliverBytes(a.Bytes)
	}
	if a.Reply != "" {
		h.recordBody(l, a.Reply, a.Body)
	}
}

// dripRaw writes one chunk and plans the rest.
func (h *simServer) dripRaw(l *simConn, a peer.Raw) {
	all := a.Bytes
	if a.Repeat > 1 {
		all = bytes.Repeat(all, a.Repeat)
	}
	part := all[:min(a.Chunk, len(all))]
	l.deliverBytes(part)
	if rest := all[len(part):]; len(rest) > 0 {
		a.Bytes, a.Repeat = rest, 0
		h.w.timeline.planAction(h.w.currentTime()+a.Every+h.nextJitter(), h.server.Name, func() { h.performAction(a) })
	}
}

// performExit ends the server's side with the error that a client of that kind would see. A half-open connection only stops
// reading.
func (h *simServer) performExit(l *simConn, a peer.Exit) {
	h.w.needsWait = true
	if a.HalfOpen {
		l.setReading(false)
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
		e.err = h.brokenError()
	default:
		e.err = &transports.Error{Class: messages.ClassNetwork, Text: h.serverLabel() + " closed the connection"}
	}
	h.endServerSide(l, e, 0)
}

// signalName returns the system's name of a signal, as os/exec prints it.
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

// isTask reports whether a message answers a call with a task. It looks for the members instead of decoding, because every
// answer passes here.
func isTask(body []byte) bool {
	return bytes.Contains(body, []byte(`"taskId":"`)) && !bytes.Contains(body, []byte(`"content":[`))
}

// taskOf returns the id of the task that a message is about.
func taskOf(body []byte) string { return textAfter(body, `"taskId":"`, '"') }

// timeToLiveOf returns the time to live of the task that an answer gives to a call.
func timeToLiveOf(answer []byte) time.Duration {
	result := rawjson.Member(answer, "result")
	if inside := rawjson.Member(result, "task"); inside != nil {
		result = inside
	}
	for _, name := range []string{"ttl", "ttlMs"} {
		if ms, err := strconv.Atoi(string(rawjson.Member(result, name))); err == nil {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return 0
}

// uriOf returns the URI that a request is about.
func uriOf(body []byte) string { return textAfter(body, `"uri":"`, '"') }

// levelOf returns the level of log messages that a request asks for.
func levelOf(body []byte) string { return textAfter(body, `"level":"`, '"') }

// cancelledOf returns the id of the request that a notification cancels, as the client wrote it.
func cancelledOf(body []byte) string {
	return string(rawjson.Member(rawjson.Member(body, "params"), "requestId"))
}

// callOf returns the harness's id of a call from the arguments of the tool.
func callOf(body []byte) string { return textAfter(body, `"call":"`, '"') }

// codeOf returns the code of an answer that is a JSON-RPC error, 0 for a result.
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
	// An error of the code 0 must not look like a result.
	return cmp.Or(m.Error.Code, -1)
}
