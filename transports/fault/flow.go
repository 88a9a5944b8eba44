package fault

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Flow is one conversation between a client and a server, or several over one proxy. It is safe for concurrent use.
type Flow struct {
	control *Control
	began   time.Time

	mu          sync.Mutex
	calls       map[string]*call
	order       []*call // the oldest first
	lateAnswers map[string]*heldAnswer
	series      []*progressSeries
	clockStates map[*rule]*clockState
	// renamedTools maps the names that a fault has given to tools to their own.
	renamedTools map[string]string
	// usedMethods are the methods that the client has called.
	usedMethods map[string]struct{}
	// endOnCall ends the server with the next call.
	endOnCall *rule
	// handshakeDone: the handshake was answered.
	handshakeDone bool
}

// call is a request of the client that has no answer yet.
type call struct {
	scope, id    string
	method, tool string
	token        json.RawMessage
	hits         []*pendingHit
	open         bool
	cancelled    bool // the client has given it up
	emptyPage    bool // a page after the last one was asked for
}

// pendingHit is a rule that has hit a request and waits for the answer.
type pendingHit struct {
	rule *rule
	rng  *rand.Rand
}

// heldAnswer is an answer that waits for its request to be cancelled.
type heldAnswer struct {
	body  []byte
	after time.Duration
}

// maxCalls bounds the requests that are remembered. A server that never answers must not fill the memory.
const maxCalls = 1 << 16

// Flow begins a conversation.
func (c *Control) Flow() *Flow {
	return &Flow{control: c, began: time.Now(), calls: map[string]*call{}, lateAnswers: map[string]*heldAnswer{}, clockStates: map[*rule]*clockState{},
		renamedTools: map[string]string{}, usedMethods: map[string]struct{}{}}
}

// ToServer says what becomes of what the client sends: a message or a batch. nil means that it passes as it is. Scope
// tells conversations apart that use equal ids, such as the exchanges of HTTP; it is empty if there is only one.
func (f *Flow) ToServer(scope string, body []byte) []Disposition {
	return f.applyEach(scope, body, f.applyOutgoing)
}

// ToClient says what becomes of what the server sends.
func (f *Flow) ToClient(scope string, body []byte) []Disposition {
	return f.applyEach(scope, body, f.applyIncoming)
}

// applyEach takes a batch apart. What is not hit stays a batch.
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
	if len(dispositions) == 0 {
		return nil
	}
	if len(untouched) > 0 {
		dispositions = append([]Disposition{{Body: encodeArray(untouched), Changed: true}}, dispositions...)
	}
	return dispositions
}

// Exchange says what becomes of something that is no message: GET, DELETE, dial.
func (f *Flow) Exchange(method string) Disposition {
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

func (f *Flow) applyOutgoing(scope string, body []byte) Disposition {
	disposition := Disposition{Body: body}
	m, ok := readMessage(body)
	if !ok {
		return disposition
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.answer { // to a question of the server: faults know it as the method "answer"
		m.method = "answer"
	}
	if realName, ok := f.renamedTools[m.tool]; ok && m.method == "tools/call" {
		f.changeMember(&m, &disposition, func(json.RawMessage) json.RawMessage { return quoteJSON(realName) }, "params", "name")
		m.tool = realName
	}
	if m.id != "" && !m.answer {
		m.call = f.rememberCall(scope, &m)
		if len(f.usedMethods) < maxCalls {
			f.usedMethods[m.method] = struct{}{}
		}
	}
	for _, r := range f.control.currentRules() {
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
		if m.call != nil && r.kind.effect.in != nil && !r.kind.effect.everyMessage && r.Direction != ToServer {
			m.call.hits = append(m.call.hits, s)
		}
		if r.kind.effect.out != nil && (r.Direction != ToClient || m.call != nil && r.kind.effect.in != nil) {
			f.applyEffect(r.kind.effect.out, s, &m, &disposition)
		}
	}
	if r := f.endOnCall; r != nil && m.method == "tools/call" {
		f.endOnCall = nil
		f.applyEffect(func(a *effectContext) string {
			a.disposition.End, a.disposition.Last = r.serverEnd(), true
			return "the server ends in the middle of the call"
		},
			&pendingHit{rule: r}, &m, &disposition)
	}
	if m.cancels != "" {
		f.handleCancelled(scope, &m, &disposition)
	}
	disposition.Body = m.body
	if m.call != nil && (disposition.Drop || disposition.Refuse != nil || disposition.End != nil && !disposition.Last) {
		f.forgetCall(m.call) // no answer will come
	}
	return disposition
}

func (f *Flow) applyIncoming(scope string, body []byte) Disposition {
	disposition := Disposition{Body: body}
	m, ok := readMessage(body)
	if !ok {
		return disposition
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.answer {
		if m.call = f.findCall(scope, m.id); m.call != nil {
			m.method, m.tool = m.call.method, m.call.tool
			f.forgetCall(m.call)
			f.handshakeDone = f.handshakeDone || matchesAny(handshakeMethods, m.method)
			for _, s := range m.call.hits {
				if f.inForce(s.rule) {
					f.applyEffect(s.rule.kind.effect.in, s, &m, &disposition)
				}
			}
		}
	} else {
		m.server = true
	}
	for _, r := range f.control.currentRules() {
		e := r.kind.effect
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

// inForce reports whether a rule that has hit a request still counts for its answer: removing a rule heals what waits.
func (f *Flow) inForce(r *rule) bool { return slices.Contains(f.control.currentRules(), r) }

// tryHit asks a rule whether it hits a message now.
func (f *Flow) tryHit(r *rule, d Direction, m *message) *pendingHit {
	if m.method == "dial" && len(r.methods) == 0 && !r.kind.effect.everyMessage || r.kind.Instant && !r.needsMessage || !matchesAny(r.servers, f.control.server) || !matchesAny(r.methods, m.method) ||
		len(r.tools) > 0 && !matchesAny(r.tools, m.tool) {
		return nil
	}
	if _, active := r.currentWindow(time.Now()); !active {
		return nil
	}
	rng, hit := r.drawHit(f.control.seed, f.control.server, d, m.method, m.tool)
	if !hit {
		return nil
	}
	return &pendingHit{r, rng}
}

// effectContext is what an effect works with.
type effectContext struct {
	*pendingHit
	f           *Flow
	m           *message
	disposition *Disposition
}

// applyEffect lets an effect act. What says that it did nothing is not told.
func (f *Flow) applyEffect(e func(*effectContext) string, s *pendingHit, m *message, disposition *Disposition) {
	text := e(&effectContext{s, f, m, disposition})
	if text == "" {
		return
	}
	h := Hit{Rule: s.rule.Name, Fault: s.rule.kind.Name, Server: f.control.server, Method: m.method, Tool: m.tool, ID: m.id, Text: text}
	disposition.Hits = append(disposition.Hits, h)
	f.control.reportHit(h)
}

// changeMember changes the message at a path.
func (f *Flow) changeMember(m *message, disposition *Disposition, change func(json.RawMessage) json.RawMessage, path ...string) bool {
	b, ok := changeAt(m.body, change, path...)
	if ok {
		m.body, disposition.Changed = b, true
	}
	return ok
}

func (a *effectContext) changeMember(change func(json.RawMessage) json.RawMessage, path ...string) bool {
	return a.f.changeMember(a.m, a.disposition, change, path...)
}

func (f *Flow) rememberCall(scope string, m *message) *call {
	c := &call{scope: scope, id: m.id, method: m.method, tool: m.tool, token: m.token, open: true}
	if len(f.order) >= maxCalls {
		f.order = slices.DeleteFunc(f.order, func(c *call) bool { return !c.open })
		if len(f.order) >= maxCalls {
			f.forgetCall(f.order[0])
			f.order = f.order[1:]
		}
	}
	f.calls[scope+"\x00"+m.id] = c
	f.order = append(f.order, c)
	if len(f.order) > 64 && len(f.order) > 4*len(f.calls) {
		f.order = slices.DeleteFunc(f.order, func(c *call) bool { return !c.open })
	}
	return c
}

// findCall gives the request that an answer belongs to: of its own exchange, else the newest one with that id, because a
// stream that was opened again has a scope of its own.
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

func (f *Flow) forgetCall(c *call) {
	c.open = false
	if key := c.scope + "\x00" + c.id; f.calls[key] == c {
		delete(f.calls, key)
	}
	f.series = slices.DeleteFunc(f.series, func(s *progressSeries) bool { return s.call == c && !s.untilCancelled })
}

// handleCancelled ends what goes on for a request that the client has given up, and lets its late answer go.
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

// MessageInfo is what a flow reads of a message.
type MessageInfo struct {
	// Method is that of the request for an answer that has one. Tool is the tool, prompt or URI.
	ID, Method, Tool string
	Answer           bool
	// Failed: an answer that is an error of the protocol, or says isError.
	Failed bool
}

// Inspect reads a message or a batch that passes untouched. noted lets it count, so that rules that come later know to what
// an answer belongs; who asks a flow for fates does not note.
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

func isFailedAnswer(body []byte) bool {
	var a struct {
		Error  json.RawMessage `json:"error"`
		Result struct {
			IsError bool `json:"isError"`
		} `json:"result"`
	}
	_ = json.Unmarshal(body, &a) // of a result that is no object nothing is known
	return len(a.Error) > 0 || a.Result.IsError
}
