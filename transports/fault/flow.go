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

	mu     sync.Mutex
	calls  map[string]*call
	order  []*call // the oldest first
	late   map[string]*held
	series []*series
	beats  map[*rule]*beat
	// renamed maps the names that a fault has given to tools to their own.
	renamed map[string]string
	// used are the methods that the client has called.
	used map[string]struct{}
	// midcall ends the server with the next call.
	midcall *rule
	// ready: the handshake was answered.
	ready bool
}

// call is a request of the client that has no answer yet.
type call struct {
	scope, id    string
	method, tool string
	token        json.RawMessage
	hits         []*struck
	open         bool
	cancelled    bool // the client has given it up
	emptied      bool // a page after the last one was asked for
}

// struck is a rule that has hit a request and waits for the answer.
type struck struct {
	rule *rule
	rng  *rand.Rand
}

// held is an answer that waits for its request to be cancelled.
type held struct {
	body  []byte
	after time.Duration
}

// maxCalls bounds the requests that are remembered. A server that never answers must not fill the memory.
const maxCalls = 1 << 16

// Flow begins a conversation.
func (c *Control) Flow() *Flow {
	return &Flow{control: c, began: time.Now(), calls: map[string]*call{}, late: map[string]*held{}, beats: map[*rule]*beat{},
		renamed: map[string]string{}, used: map[string]struct{}{}}
}

// ToServer says what becomes of what the client sends: a message or a batch. nil means that it passes as it is. Scope
// tells conversations apart that use equal ids, such as the exchanges of HTTP; it is empty if there is only one.
func (f *Flow) ToServer(scope string, body []byte) []Fate { return f.pass(scope, body, f.out) }

// ToClient says what becomes of what the server sends.
func (f *Flow) ToClient(scope string, body []byte) []Fate { return f.pass(scope, body, f.in) }

// pass takes a batch apart. What is not hit stays a batch.
func (f *Flow) pass(scope string, body []byte, one func(string, []byte) Fate) []Fate {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '[' {
		fate := one(scope, body)
		if fate.plain() {
			return nil
		}
		return []Fate{fate}
	}
	parts := elements(body)
	var fates []Fate
	var rest []json.RawMessage
	for _, p := range parts {
		fate := one(scope, p)
		if fate.plain() {
			rest = append(rest, p)
		} else {
			fates = append(fates, fate)
		}
	}
	if len(fates) == 0 {
		return nil
	}
	if len(rest) > 0 {
		fates = append([]Fate{{Body: array(rest), Changed: true}}, fates...)
	}
	return fates
}

// Exchange says what becomes of something that is no message: GET, DELETE, dial.
func (f *Flow) Exchange(method string) Fate {
	m := message{method: method}
	fate := Fate{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.control.current() {
		if s := f.strike(r, ToServer, &m); s != nil && r.kind.effect.out != nil {
			f.do(r.kind.effect.out, s, &m, &fate)
		}
	}
	return fate
}

func (f *Flow) out(scope string, body []byte) Fate {
	fate := Fate{Body: body}
	m, ok := read(body)
	if !ok {
		return fate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.answer { // to a question of the server: faults know it as the method "answer"
		m.method = "answer"
	}
	if own, ok := f.renamed[m.tool]; ok && m.method == "tools/call" {
		f.change(&m, &fate, func(json.RawMessage) json.RawMessage { return quote(own) }, "params", "name")
		m.tool = own
	}
	if m.id != "" && !m.answer {
		m.call = f.remember(scope, &m)
		if len(f.used) < maxCalls {
			f.used[m.method] = struct{}{}
		}
	}
	for _, r := range f.control.current() {
		if r.kind.effect.out == nil && r.kind.effect.in == nil {
			continue
		}
		if r.kind.effect.passing && r.Direction == ToClient || r.kind.effect.out == nil && m.call == nil {
			continue
		}
		s := f.strike(r, ToServer, &m)
		if s == nil {
			continue
		}
		if m.call != nil && r.kind.effect.in != nil && !r.kind.effect.passing && r.Direction != ToServer {
			m.call.hits = append(m.call.hits, s)
		}
		if r.kind.effect.out != nil && (r.Direction != ToClient || m.call != nil && r.kind.effect.in != nil) {
			f.do(r.kind.effect.out, s, &m, &fate)
		}
	}
	if r := f.midcall; r != nil && m.method == "tools/call" {
		f.midcall = nil
		f.do(func(a *act) string {
			a.fate.End, a.fate.Last = r.end(), true
			return "the server ends in the middle of the call"
		},
			&struck{rule: r}, &m, &fate)
	}
	if m.cancels != "" {
		f.cancelled(scope, &m, &fate)
	}
	fate.Body = m.body
	if m.call != nil && (fate.Drop || fate.Refuse != nil || fate.End != nil && !fate.Last) {
		f.forget(m.call) // no answer will come
	}
	return fate
}

func (f *Flow) in(scope string, body []byte) Fate {
	fate := Fate{Body: body}
	m, ok := read(body)
	if !ok {
		return fate
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if m.answer {
		if m.call = f.find(scope, m.id); m.call != nil {
			m.method, m.tool = m.call.method, m.call.tool
			f.forget(m.call)
			f.ready = f.ready || anyMatches(handshakes, m.method)
			for _, s := range m.call.hits {
				if f.inForce(s.rule) {
					f.do(s.rule.kind.effect.in, s, &m, &fate)
				}
			}
		}
	} else {
		m.server = true
	}
	for _, r := range f.control.current() {
		e := r.kind.effect
		if e.in == nil || r.Direction == ToServer || !(e.passing || m.server && e.own && (r.On != "" || r.Direction == ToClient)) {
			continue
		}
		if s := f.strike(r, ToClient, &m); s != nil {
			f.do(e.in, s, &m, &fate)
		}
	}
	fate.Body = m.body
	return fate
}

// inForce reports whether a rule that has hit a request still counts for its answer: removing a rule heals what waits.
func (f *Flow) inForce(r *rule) bool { return slices.Contains(f.control.current(), r) }

// strike asks a rule whether it hits a message now.
func (f *Flow) strike(r *rule, d Direction, m *message) *struck {
	if m.method == "dial" && len(r.on) == 0 && !r.kind.effect.passing || r.kind.Instant && !r.matcher || !anyMatches(r.servers, f.control.server) || !anyMatches(r.on, m.method) ||
		len(r.tool) > 0 && !anyMatches(r.tool, m.tool) {
		return nil
	}
	if _, active := r.window(time.Now()); !active {
		return nil
	}
	rng, hit := r.draw(f.control.seed, f.control.server, d, m.method, m.tool)
	if !hit {
		return nil
	}
	return &struck{r, rng}
}

// act is what an effect works with.
type act struct {
	*struck
	f    *Flow
	m    *message
	fate *Fate
}

// do lets an effect act. What says that it did nothing is not told.
func (f *Flow) do(e func(*act) string, s *struck, m *message, fate *Fate) {
	text := e(&act{s, f, m, fate})
	if text == "" {
		return
	}
	h := Hit{Rule: s.rule.Name, Fault: s.rule.kind.Name, Server: f.control.server, Method: m.method, Tool: m.tool, ID: m.id, Text: text}
	fate.Hits = append(fate.Hits, h)
	f.control.tell(h)
}

// change changes the message at a path.
func (f *Flow) change(m *message, fate *Fate, to func(json.RawMessage) json.RawMessage, path ...string) bool {
	b, ok := inside(m.body, to, path...)
	if ok {
		m.body, fate.Changed = b, true
	}
	return ok
}

func (a *act) change(to func(json.RawMessage) json.RawMessage, path ...string) bool {
	return a.f.change(a.m, a.fate, to, path...)
}

func (f *Flow) remember(scope string, m *message) *call {
	c := &call{scope: scope, id: m.id, method: m.method, tool: m.tool, token: m.token, open: true}
	if len(f.order) >= maxCalls {
		f.order = slices.DeleteFunc(f.order, func(c *call) bool { return !c.open })
		if len(f.order) >= maxCalls {
			f.forget(f.order[0])
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

// find gives the request that an answer belongs to: of its own exchange, else the newest one with that id, because a
// stream that was opened again has a scope of its own.
func (f *Flow) find(scope, id string) *call {
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

func (f *Flow) forget(c *call) {
	c.open = false
	if key := c.scope + "\x00" + c.id; f.calls[key] == c {
		delete(f.calls, key)
	}
	f.series = slices.DeleteFunc(f.series, func(s *series) bool { return s.call == c && !s.withheld })
}

// cancelled ends what goes on for a request that the client has given up, and lets its late answer go.
func (f *Flow) cancelled(scope string, m *message, fate *Fate) {
	f.series = slices.DeleteFunc(f.series, func(s *series) bool { return s.call.id == m.cancels })
	if c := f.find(scope, m.cancels); c != nil {
		c.cancelled = true
	}
	if h := f.late[m.cancels]; h != nil {
		delete(f.late, m.cancels)
		fate.Late = append(fate.Late, h.body)
		fate.After = max(fate.After, h.after)
	}
}

// Seen is what a flow reads of a message.
type Seen struct {
	// Method is that of the request for an answer that has one. Tool is the tool, prompt or URI.
	ID, Method, Tool string
	Answer           bool
	// Failed: an answer that is an error of the protocol, or says isError.
	Failed bool
}

// See reads a message or a batch that passes untouched. noted lets it count, so that rules that come later know to what
// an answer belongs; who asks a flow for fates does not note.
func (f *Flow) See(toServer bool, scope string, body []byte, noted bool) []Seen {
	body = bytes.TrimSpace(body)
	parts := []json.RawMessage{body}
	if len(body) > 0 && body[0] == '[' {
		parts = elements(body)
	}
	var out []Seen
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range parts {
		m, ok := read(p)
		if !ok {
			continue
		}
		s := Seen{m.id, m.method, m.tool, m.answer, m.answer && failed(p)}
		switch {
		case toServer && !m.answer && m.id != "" && noted:
			f.remember(scope, &m)
		case !toServer && m.answer:
			if c := f.find(scope, m.id); c != nil {
				s.Method, s.Tool = c.method, c.tool
				if noted {
					f.forget(c)
				}
			}
		}
		out = append(out, s)
	}
	return out
}

func failed(body []byte) bool {
	var a struct {
		Error  json.RawMessage `json:"error"`
		Result struct {
			IsError bool `json:"isError"`
		} `json:"result"`
	}
	_ = json.Unmarshal(body, &a) // of a result that is no object nothing is known
	return len(a.Error) > 0 || a.Result.IsError
}
