package fault

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Flow is one conversation between a client and a server, or several over one proxy (told apart by scope). It is safe
// for concurrent use: one lock makes all its decisions happen one after the other, which the repeatability of a seed
// needs.
type Flow struct {
	control *Control
	began   time.Time // when the conversation began

	// mu guards all fields below. rule.mu and the lock of the rules may be taken while it is held.
	mu          sync.Mutex
	calls       map[string]*call       // requests without an answer, by scope and id
	order       []*call                // the same, the oldest first; closed ones are removed from time to time
	lateAnswers map[string]*heldAnswer // answers that wait for a cancellation, by the request's id; at most maxLate
	series      []*progressSeries      // progress notifications that go on by the clock
	clockStates map[*rule]*clockState  // only of rules with a clock
	// renamedTools maps the names that a fault gave to tools to their real names, so that calls of them work.
	renamedTools map[string]string
	// usedMethods are the methods that the client has used, at most maxCalls.
	usedMethods map[string]struct{}
	// secondPages maps the method of a list to the cursor, as JSON, that empty-cursor what=second has replaced.
	secondPages map[string]json.RawMessage
	// endOnCall is the rule that ends the server at the next tools/call (crash midcall=yes), else nil.
	endOnCall *rule
	// handshakeDone is true once a handshake was answered.
	handshakeDone bool
}

// A call is a request of the client that has no answer yet.
type call struct {
	scope, id    string
	method, tool string
	token        json.RawMessage // the progress token as JSON; empty if the client wants no progress
	hits         []*pendingHit   // rules that will act on the answer
	open         bool            // false once the request was answered, or cannot be
	cancelled    bool            // the client has cancelled it
	emptyPage    bool            // the client asked for the page after the last one (empty-cursor)
	firstPage    bool            // the client asked without a cursor
}

// A pendingHit is a rule that has hit a request and will act on its answer, with the random source of that hit.
type pendingHit struct {
	rule *rule
	rng  *rand.Rand
}

// A heldAnswer is an answer that waits until the client cancels its request (late-response).
type heldAnswer struct {
	body  []byte
	after time.Duration // delay after the cancellation
}

// maxCalls bounds the requests that are remembered, because a server that never answers must not fill the memory.
// Beyond it the oldest is forgotten: its answer then passes without its rules.
const maxCalls = 1 << 16

// Flow begins a conversation. It needs no end.
func (c *Control) Flow() *Flow {
	return &Flow{control: c, began: time.Now(), calls: map[string]*call{}, lateAnswers: map[string]*heldAnswer{}, clockStates: map[*rule]*clockState{},
		renamedTools: map[string]string{}, usedMethods: map[string]struct{}{}, secondPages: map[string]json.RawMessage{}}
}

// ToServer decides about a message, or a batch, of the client. nil means that it passes as it is. scope tells
// conversations apart that use equal ids, such as the exchanges of HTTP; it is empty if there is only one.
func (f *Flow) ToServer(scope string, body []byte) []Disposition {
	return f.applyEach(scope, body, f.applyOutgoing)
}

// ToClient decides about a message, or a batch, of the server, in the same way.
func (f *Flow) ToClient(scope string, body []byte) []Disposition {
	return f.applyEach(scope, body, f.applyIncoming)
}

// applyEach decides about each message of a batch. The messages that no rule hits stay together in one batch, which
// comes first.
func (f *Flow) applyEach(scope string, body []byte, one func(string, []byte) Disposition) []Disposition {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '[' {
		disposition := one(scope, body)
		if disposition.isUnchanged() {
			return nil
		}
		return []Disposition{disposition}
	}
	parts := readArray(body)
	var dispositions []Disposition
	var untouched []json.RawMessage
	for _, p := range parts {
		disposition := one(scope, p)
		if disposition.isUnchanged() {
			untouched = append(untouched, p)
		} else {
			dispositions = append(dispositions, disposition)
		}
	}
	// nil keeps the very bytes of the batch, spaces included.
	if len(dispositions) == 0 {
		return nil
	}
	if len(untouched) > 0 {
		dispositions = append([]Disposition{{Body: encodeArray(untouched), Changed: true}}, dispositions...)
	}
	return dispositions
}

// Exchange decides about something that is no message: GET, DELETE, dial. Rules name it in On like a method.
func (f *Flow) Exchange(method string) Disposition {
	// An exchange has no body, so only the effects on what the client sends can act.
	m := message{method: method}
	disposition := Disposition{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.control.currentRules() {
		if s := f.tryHit(r, ToServer, &m); s != nil && r.kind.effect.out != nil {
			f.applyEffect(r.kind.effect.out, s, &m, &disposition)
		}
	}
	return disposition
}

// applyOutgoing decides about one message of the client, and remembers a request for its answer.
func (f *Flow) applyOutgoing(scope string, body []byte) Disposition {
	disposition := Disposition{Body: body}
	// What is no JSON-RPC passes as it is: the receiver must cope with it.
	m, ok := readMessage(body)
	if !ok {
		return disposition
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	// An answer to a request of the server has no method of its own; rules name it "answer".
	if m.answer { // to a question of the server: faults know it as the method "answer"
		m.method = "answer"
	}
	// The server does not know the name that long-names gave to its tool.
	if realName, ok := f.renamedTools[m.tool]; ok && m.method == "tools/call" {
		f.changeMember(&m, &disposition, func(json.RawMessage) json.RawMessage { return quoteJSON(realName) }, "params", "name")
		m.tool = realName
	}
	// The request is remembered before the rules are asked: a rule may attach itself to its answer.
	if m.id != "" && !m.answer {
		m.call = f.rememberCall(scope, &m)
		if len(f.usedMethods) < maxCalls {
			f.usedMethods[m.method] = struct{}{}
		}
	}
	for _, r := range f.control.currentRules() {
		// Skip the rules that only act by the clock, and those that cannot act on this message.
		if r.kind.effect.out == nil && r.kind.effect.in == nil {
			continue
		}
		if r.kind.effect.everyMessage && r.Direction == ToClient || r.kind.effect.out == nil && m.call == nil {
			continue
		}
		s := f.tryHit(r, ToServer, &m)
		if s == nil {
			continue
		}
		// A hit on a request counts for its answer too, unless the rule is limited to what goes to the server.
		if m.call != nil && r.kind.effect.in != nil && !r.kind.effect.everyMessage && r.Direction != ToServer {
			m.call.hits = append(m.call.hits, s)
		}
		if r.kind.effect.out != nil && (r.Direction != ToClient || m.call != nil && r.kind.effect.in != nil) {
			f.applyEffect(r.kind.effect.out, s, &m, &disposition)
		}
	}
	// crash midcall=yes armed this: the first tools/call reaches the server, which then ends.
	if r := f.endOnCall; r != nil && m.method == "tools/call" {
		f.endOnCall = nil
		f.applyEffect(func(a *effectContext) string {
			a.disposition.End, a.disposition.Last = r.serverEnd(), true
			return "the server ends in the middle of the call"
		},
			&pendingHit{rule: r}, &m, &disposition)
	}
	// The cancellation may release an answer that late-response has held back.
	if m.cancels != "" {
		f.handleCancelled(scope, &m, &disposition)
	}
	disposition.Body = m.body
	if m.call != nil && (disposition.Drop || disposition.Refuse != nil || disposition.End != nil && !disposition.Last) {
		f.forgetCall(m.call) // no answer will come
	}
	return disposition
}

// applyIncoming decides about one message of the server. For an answer it applies the rules that hit its request; for
// any other message, those that name it.
func (f *Flow) applyIncoming(scope string, body []byte) Disposition {
	disposition := Disposition{Body: body}
	m, ok := readMessage(body)
	if !ok {
		return disposition
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.answer {
		// An answer to no known request keeps its empty method, so only rules without On can hit it.
		if m.call = f.findCall(scope, m.id); m.call != nil {
			m.method, m.tool = m.call.method, m.call.tool
			f.forgetCall(m.call)
			f.handshakeDone = f.handshakeDone || matchesAny(handshakeMethods, m.method) // an error counts too: the server has answered
			for _, s := range m.call.hits {
				if f.inForce(s.rule) { // a rule that was removed meanwhile acts no more
					f.applyEffect(s.rule.kind.effect.in, s, &m, &disposition)
				}
			}
		}
	} else {
		m.server = true
	}
	for _, r := range f.control.currentRules() {
		e := r.kind.effect
		// Rules that hit answers by their requests had their turn above.
		if e.in == nil || r.Direction == ToServer || !(e.everyMessage || m.server && e.serverMessages && (r.On != "" || r.Direction == ToClient)) {
			continue
		}
		if s := f.tryHit(r, ToClient, &m); s != nil {
			f.applyEffect(e.in, s, &m, &disposition)
		}
	}
	disposition.Body = m.body
	return disposition
}

// inForce reports whether a rule is still in force. Removing a rule also frees the answers of the requests that it
// has hit.
func (f *Flow) inForce(r *rule) bool { return slices.Contains(f.control.currentRules(), r) }

// tryHit asks a rule whether it hits a message now; nil if not. A dial is hit only by a rule that names it or hits
// every message. The caller holds mu.
func (f *Flow) tryHit(r *rule, d Direction, m *message) *pendingHit {
	if m.method == "dial" && len(r.methods) == 0 && !r.kind.effect.everyMessage || r.kind.Instant.Has(rules) && !r.needsMessage || !matchesAny(r.servers, f.control.server) || !matchesAny(r.methods, m.method) ||
		len(r.tools) > 0 && !matchesAny(r.tools, m.tool) {
		return nil
	}
	if _, active := r.currentWindow(time.Now()); !active {
		return nil
	}
	// Every other condition comes first, because a draw counts the message.
	rng, hit := r.drawHit(f.control.seed, f.control.server, d, m.method, m.tool)
	if !hit {
		return nil
	}
	return &pendingHit{r, rng}
}

// An effectContext is the argument of an effect: the hit, the message and its disposition. It is valid during the
// call only.
type effectContext struct {
	*pendingHit
	f           *Flow
	m           *message
	disposition *Disposition
}

// applyEffect lets an effect act and reports a Hit, unless the effect found nothing to do. The caller holds mu.
func (f *Flow) applyEffect(e func(*effectContext) string, s *pendingHit, m *message, disposition *Disposition) {
	// The effect works on m and disposition in place, so the next rule sees the message as this one left it.
	text := e(&effectContext{s, f, m, disposition})
	if text == "" {
		return
	}
	s.rule.effects.Add(1)
	h := Hit{Rule: s.rule.Name, Fault: s.rule.kind.Name, Server: f.control.server, Method: m.method, Tool: m.tool, ID: m.id, Text: text}
	disposition.Hits = append(disposition.Hits, h)
	f.control.reportHit(h)
}

// changeMember changes the member of the message to which path leads, and marks the disposition as changed.
func (f *Flow) changeMember(m *message, disposition *Disposition, change func(json.RawMessage) json.RawMessage, path ...string) bool {
	b, ok := changeAt(m.body, change, path...)
	if ok {
		m.body, disposition.Changed = b, true
	}
	return ok
}

// changeMember is Flow.changeMember for the message of the effect.
func (a *effectContext) changeMember(change func(json.RawMessage) json.RawMessage, path ...string) bool {
	return a.f.changeMember(a.m, a.disposition, change, path...)
}

// rememberCall records a request until its answer. A request with the id of an open one replaces it. The caller holds
// mu.
func (f *Flow) rememberCall(scope string, m *message) *call {
	c := &call{scope: scope, id: m.id, method: m.method, tool: m.tool, token: m.token, firstPage: m.cursor == nil, open: true}
	if len(f.order) >= maxCalls {
		f.order = slices.DeleteFunc(f.order, func(c *call) bool { return !c.open }) // closed requests make room first
		if len(f.order) >= maxCalls {
			f.forgetCall(f.order[0])
			f.order = f.order[1:]
		}
	}
	f.calls[scope+"\x00"+m.id] = c
	f.order = append(f.order, c)
	// Closed requests are removed before they outnumber the open ones by far: the cost is spread over the requests.
	if len(f.order) > 64 && len(f.order) > 4*len(f.calls) {
		f.order = slices.DeleteFunc(f.order, func(c *call) bool { return !c.open })
	}
	return c
}

// findCall returns the request that an answer belongs to: of its own scope, else the newest one with that id, because
// a stream that was opened again has another scope. The caller holds mu.
func (f *Flow) findCall(scope, id string) *call {
	if c := f.calls[scope+"\x00"+id]; c != nil {
		return c
	}
	for _, c := range slices.Backward(f.order) {
		if c.open && c.id == id {
			return c
		}
	}
	return nil
}

// forgetCall closes a request, and ends the series that end with its answer. It stays in order until rememberCall
// removes it. The caller holds mu.
func (f *Flow) forgetCall(c *call) {
	c.open = false
	// A newer request may have taken the id: it stays.
	if key := c.scope + "\x00" + c.id; f.calls[key] == c {
		delete(f.calls, key)
	}
	f.series = slices.DeleteFunc(f.series, func(s *progressSeries) bool { return s.call == c && !s.untilCancelled })
}

// handleCancelled ends the series of a request that the client has cancelled, and releases its held answer. The
// caller holds mu.
func (f *Flow) handleCancelled(scope string, m *message, disposition *Disposition) {
	f.series = slices.DeleteFunc(f.series, func(s *progressSeries) bool { return s.call.id == m.cancels })
	if c := f.findCall(scope, m.cancels); c != nil {
		c.cancelled = true
	}
	if h := f.lateAnswers[m.cancels]; h != nil {
		delete(f.lateAnswers, m.cancels)
		disposition.Late = append(disposition.Late, h.body)
		disposition.After = max(disposition.After, h.after)
	}
}

// MessageInfo is a flow's view of a message, for logs and counts.
type MessageInfo struct {
	// Method of an answer is that of its request, if the flow knows it. Tool is the tool, prompt or URI.
	ID, Method, Tool string
	Answer           bool
	// Failed is true for an answer that is an error of the protocol, or says isError.
	Failed bool
}

// Inspect reads a message or a batch without deciding about it. With record it remembers requests and answers, so
// that rules that are added later know the request of an answer; a caller that uses ToServer and ToClient for the
// same message must not record it.
func (f *Flow) Inspect(toServer bool, scope string, body []byte, record bool) []MessageInfo {
	body = bytes.TrimSpace(body)
	parts := []json.RawMessage{body}
	if len(body) > 0 && body[0] == '[' {
		parts = readArray(body)
	}
	var out []MessageInfo
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range parts {
		m, ok := readMessage(p)
		if !ok {
			continue
		}
		s := MessageInfo{m.id, m.method, m.tool, m.answer, m.answer && isFailedAnswer(p)}
		switch {
		// A request is remembered without the rules being asked: none was in force.
		case toServer && !m.answer && m.id != "" && record:
			f.rememberCall(scope, &m)
		case !toServer && m.answer:
			if c := f.findCall(scope, m.id); c != nil {
				s.Method, s.Tool = c.method, c.tool
				if record {
					f.forgetCall(c)
				}
			}
		}
		out = append(out, s)
	}
	return out
}

// isFailedAnswer reports whether an answer is a protocol error or a result with isError.
func isFailedAnswer(body []byte) bool {
	var a struct {
		Error  json.RawMessage `json:"error"`
		Result struct {
			IsError bool `json:"isError"`
		} `json:"result"`
	}
	_ = json.Unmarshal(body, &a) // a result that is no object counts as no failure
	return len(a.Error) > 0 || a.Result.IsError
}
