package agents

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// agent is one program that uses the gateway. Its operations run concurrently.
type agent struct {
	fleet *Fleet
	plan  scenario.PlannedAgent
	// number counts the agents from 1.
	number int
	// opening holds a token while no operation opens a session. It is no mutex, because the one who holds it waits for answers, and
	// time in a simulation stands still while somebody waits for a mutex.
	opening chan struct{}

	// mu guards the fields below. It is never held while anything is sent.
	mu      sync.Mutex
	session *session
	epochs  uint64
	calls   map[string]*openCall
	called  int
	ended   bool
	// listens are the subscriptions of the modern era that stand, by their ids.
	listens map[string]context.CancelFunc
	// state is the newest state that a server gave with a request for input, and statefulParams and statefulMethod that request.
	state, statefulMethod, statefulParams string
	// states counts the states that servers gave.
	states int
}

// openCall is a call of a tool whose end is not recorded.
type openCall struct {
	event history.Event
	// number counts the calls of the agent, operation is the number that was drawn for this one, and turn counts how often it has waited.
	number, operation, turn int
	// asTask is set for a call that is to become a task, followed once its agent asks for the task, and givenUp once it has given the call up.
	asTask, followed, givenUp bool
}

// session is one session of an agent: from its opening to its end.
type session struct {
	agent *agent
	epoch uint64
	link  link
	// lifetime ends with the session, and with it the exchanges of the modern era.
	lifetime context.Context //nolint:containedctx // it is that of the session
	cut      context.CancelFunc
	// over is closed when nothing more comes.
	over     chan struct{}
	overOnce sync.Once

	// mu guards the requests that have no answer, by their ids, and the last id.
	mu     sync.Mutex
	asked  map[string]*request
	lastID int
	parted bool
	// answered are the calls that have their answers, questions what servers have asked and have no answer to, by their ids, and questioned
	// counts what they have ever asked.
	answered   map[string]bool
	questions  map[string]*openQuestion
	questioned int
	// reused are the names of requests on lines whose ids were in use, or had been, by those ids, until they are answered.
	reused map[string]string
}

// request is one request without an answer. done has room for the answer.
type request struct {
	number                  int
	id, method, about, name string
	done                    chan answer
	// takenBack is true once the agent has told the endpoint that it wants no answer; guarded by the mu of the session.
	takenBack bool
	// cut ends the exchange, if it has begun; guarded by the mu of the session.
	cut context.CancelFunc
}

// answer is what comes back: a result, or an error, or over HTTP a status alone.
type answer struct {
	result, problem []byte
	status          int
	// untaken is set in what the harness says of a call that came to nobody.
	untaken bool
	// unseen is set in what the harness says of a call whose task its agent can ask about no more.
	unseen bool
}

// link carries the messages of one session.
type link interface {
	// send sends a message; what comes back goes to session.receiveMessage. It may wait until the exchange is over. ctx ends the exchange.
	send(ctx context.Context, m outgoing)
	// end ends the session, politely or as a program that is killed does; cancels reports whether that takes back what was asked.
	end(polite bool)
	cancels(polite bool) bool
}

// outgoing is one message. id is empty for what is no request; name is what the header of the modern era repeats.
type outgoing struct {
	id, method, name string
	body             []byte
}

func newAgent(f *Fleet, p scenario.PlannedAgent, number int) *agent {
	a := &agent{fleet: f, plan: p, number: number, opening: make(chan struct{}, 1), calls: map[string]*openCall{}, listens: map[string]context.CancelFunc{}}
	a.opening <- struct{}{}
	return a
}

// modern reports whether the agent speaks the modern era.
func (a *agent) modern() bool { return a.plan.Era == messages.EraModern }

// path is the part of the endpoint's address that chooses the view.
func (a *agent) path() string {
	switch {
	case a.plan.View != "":
		return "/mcp/s/" + a.plan.View
	case a.plan.Through == scenario.ThroughPath:
		return "/mcp/v/" + a.plan.Held
	}
	return "/mcp"
}

// capabilities returns the member of the agent's requests that declares its abilities. Of four agents one declares none, one forms and roots, one
// all of them, with visits to an address, and one sampling and roots, so that a gateway has to choose its questions by the agent.
func (a *agent) capabilities() string {
	return []string{`{}`, `{"elicitation":{},"roots":{}}`, `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`, `{"sampling":{},"roots":{}}`}[a.number%4]
}

// askable names what the agent can be asked, as the history says it.
func (a *agent) askable() []string {
	return [][]string{
		nil, {"elicitation/create", "roots/list"}, {"elicitation/create", "elicitation/create url", "sampling/createMessage", "roots/list"},
		{"sampling/createMessage", "roots/list"},
	}[a.number%4]
}

// capabilitiesFor are those that the agent declares with a request about something: where it can take a task, that as well.
func (a *agent) capabilitiesFor(method, about string) string {
	a.mu.Lock()
	c := a.calls[about]
	a.mu.Unlock()
	capabilities := a.capabilities()
	if !strings.HasPrefix(method, "tasks/") && method != "subscriptions/listen" && (c == nil || !c.asTask) {
		return capabilities
	}
	comma := ""
	if capabilities != "{}" {
		comma = ","
	}
	return strings.TrimSuffix(capabilities, "}") + comma + `"extensions":{"io.modelcontextprotocol/tasks":{}}}`
}

// recordEvent writes an event of this agent.
func (a *agent) recordEvent(e history.Event) {
	e.Side, e.Agent, e.By = history.Agent, a.plan.Name, a.plan.As
	a.fleet.recordEvent(e)
}

// openSession returns the session, and opens one if there is none; nil if none can be had.
func (a *agent) openSession() *session {
	select {
	case <-a.opening:
	case <-a.fleet.lifetime.Done():
		return nil
	}
	defer func() { a.opening <- struct{}{} }()
	a.mu.Lock()
	s, ended := a.session, a.ended
	if s != nil && s.isOver() {
		a.session, s = nil, nil
	}
	if s == nil {
		a.epochs++
	}
	epoch := a.epochs
	a.mu.Unlock()
	if s != nil || ended {
		return s
	}
	s = &session{agent: a, epoch: epoch, over: make(chan struct{}), asked: map[string]*request{}, answered: map[string]bool{},
		questions: map[string]*openQuestion{}}
	s.lifetime, s.cut = context.WithCancel(a.fleet.lifetime)
	if a.plan.Over == scenario.OverHTTP {
		s.link = newHTTPLink(s)
	} else {
		s.link = newLineLink(s)
	}
	a.recordEvent(history.Event{Kind: history.Joined, Epoch: epoch, Name: string(a.plan.Era) + " " + a.plan.Over, Text: a.path(), About: a.plan.View, Names: a.askable()})
	if !a.modern() {
		s.sendTooEarly()
		got, ok := s.askEndpoint("initialize", `{"protocolVersion":"2025-11-25","capabilities":`+a.capabilities()+`,"clientInfo":{"name":"`+a.plan.Name+`","version":"1"}}`, "", "")
		if !ok || got.result == nil {
			s.endSession("it could not be opened", true)
			return nil
		}
		s.sendNotice("notifications/initialized", "")
		if h, ok := s.link.(*httpLink); ok {
			h.openStream()
		}
	}
	a.mu.Lock()
	if ended = a.ended; !ended {
		a.session = s
	}
	a.mu.Unlock()
	if ended {
		s.endSession("the agent ends", true)
		return nil
	}
	return s
}

// endSession ends a session: what was asked in it gets no answer any more, and the calls under way are ended by who serves them.
func (s *session) endSession(why string, polite bool) {
	a := s.agent
	a.mu.Lock()
	if a.session == s {
		a.session = nil
	}
	for _, cancel := range a.listens {
		cancel()
	}
	clear(a.listens)
	a.mu.Unlock()
	s.mu.Lock()
	if s.parted {
		s.mu.Unlock()
		return
	}
	s.parted = true
	var calls []string
	for _, r := range s.asked {
		if r.method == "tools/call" {
			calls = append(calls, r.about)
		}
	}
	s.mu.Unlock()
	parted := history.Event{Kind: history.Parted, Epoch: s.epoch, Text: why}
	if _, overHTTP := s.link.(*httpLink); overHTTP && !polite && !a.modern() {
		parted.Name = history.Abandoned
	}
	a.recordEvent(parted)
	for _, call := range calls {
		if s.link.cancels(polite) {
			a.giveUp(call)
		}
		a.fleet.service.disownCall(call, a)
	}
	s.link.end(polite)
	if len(calls) > 0 {
		a.fleet.running.Go(func() {
			time.Sleep(lastBytes)
			for _, call := range calls {
				a.fleet.service.endUnserved(call, a)
			}
		})
	}
	s.cutRequests()
	s.overOnce.Do(func() { close(s.over) })
}

// cutRequests ends the exchanges of all requests, in the order in which they were asked: the end of their common context would end them in another
// one each time.
func (s *session) cutRequests() {
	s.mu.Lock()
	asked := slices.SortedFunc(maps.Values(s.asked), func(a, b *request) int { return cmp.Compare(a.number, b.number) })
	for _, r := range asked {
		if r.cut != nil {
			r.cut()
		}
	}
	s.mu.Unlock()
	s.cut()
}

// lastBytes is the time in which what an agent sent before it went comes to the endpoint.
const lastBytes = 10 * time.Millisecond

// isOver reports whether nothing more comes.
func (s *session) isOver() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// endAgent ends the agent.
func (a *agent) endAgent() {
	a.mu.Lock()
	a.ended = true
	s := a.session
	a.mu.Unlock()
	if s != nil {
		s.endSession("the agent ends", true)
	}
}

// askEndpoint sends a request and waits for its answer; false if the session ends before. name says what is wrong with it on purpose.
func (s *session) askEndpoint(method, params, about, name string) (answer, bool) {
	r, body := s.newRequest(method, params, about, name)
	if r == nil {
		return answer{}, false
	}
	return s.sendRequest(s.lifetime, r, body)
}

// newRequest makes a request and records it; nil if the session has ended. Every second id is a text, and every agent counts its own: the
// same ids are in use by many at once.
func (s *session) newRequest(method, params, about, name string) (*request, []byte) {
	s.mu.Lock()
	if s.parted {
		s.mu.Unlock()
		return nil, nil
	}
	s.lastID++
	id := strconv.Itoa(s.lastID)
	if s.lastID%2 == 0 {
		id = `"` + id + `"`
	}
	r := &request{number: s.lastID, id: id, method: method, about: about, name: name, done: make(chan answer, 1)}
	s.asked[id] = r
	s.mu.Unlock()
	s.agent.recordEvent(history.Event{Kind: history.Asked, Epoch: s.epoch, ID: id, Method: method, About: about, Name: name, Level: levelIn(method, params)})
	return r, s.encodeRequest(id, method, params, s.agent.capabilitiesFor(method, about))
}

// sendRequest sends a request and waits for its answer.
func (s *session) sendRequest(ctx context.Context, r *request, body []byte) (answer, bool) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	s.mu.Lock()
	r.cut = cut
	s.mu.Unlock()
	s.link.send(ctx, outgoing{id: r.id, method: r.method, name: nameIn(r.method, body), body: body})
	select {
	case got := <-r.done:
		return s.noteAnswer(got)
	case <-s.over:
		select {
		case got := <-r.done:
			return s.noteAnswer(got)
		default:
			return answer{}, false
		}
	}
}

// noteAnswer returns an answer, false for the end of an exchange without one. A session that is gone is begun anew by the next operation.
func (s *session) noteAnswer(got answer) (answer, bool) {
	if got.status == http.StatusNotFound && !s.agent.modern() {
		if h, ok := s.link.(*httpLink); ok && !s.hasParted() {
			h.checkForgotten()
		}
		s.endSession("the endpoint does not know the session any more", false)
	}
	return got, got.status != noAnswer
}

// hasParted reports whether the agent has ended the session.
func (s *session) hasParted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parted
}

// noAnswer is the status of an exchange that ended without an answer.
const noAnswer = -1

// encodeMessage writes a message of an agent that takes no tasks.
func (s *session) encodeMessage(id, method, params string) []byte {
	return s.encodeRequest(id, method, params, s.agent.capabilities())
}

// encodeRequest writes a message. In the modern era each request says what its agent can do.
func (s *session) encodeRequest(id, method, params, capabilities string) []byte {
	b := []byte(`{"jsonrpc":"2.0"`)
	if id != "" {
		b = append(b, `,"id":`+id...)
	}
	b = rawjson.AppendText(append(b, `,"method":`...), method)
	if s.agent.modern() && id != "" {
		params = withMembers(params, `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":`+capabilities)
	}
	if params != "" {
		b = append(b, `,"params":`+params...)
	}
	return append(b, '}')
}

// withMembers adds members to the _meta of params.
func withMembers(params, members string) string {
	switch meta := rawjson.Member([]byte(params), "_meta"); {
	case params == "" || params == "{}":
		return `{"_meta":{` + members + `}}`
	case meta == nil:
		return `{"_meta":{` + members + `},` + params[1:]
	default:
		at := len(params) - len(meta) - 1 // _meta is written last here
		return params[:at+1] + members + "," + params[at+1:]
	}
}

// logLevelKey names the level of log messages that a request of the modern era wants.
const logLevelKey = "io.modelcontextprotocol/logLevel"

// levelIn returns the level of log messages that a request wants, or sets.
func levelIn(method, params string) (level string) {
	value := rawjson.Member(rawjson.Member([]byte(params), "_meta"), logLevelKey)
	if method == "logging/setLevel" {
		value = rawjson.Member([]byte(params), "level")
	}
	level, _ = rawjson.Text(value)
	return level
}

// nameIn returns what the header Mcp-Name repeats of a message.
func nameIn(method string, body []byte) string {
	member := map[string]string{
		"tools/call": "name", "prompts/get": "name", "resources/read": "uri", "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId",
	}[method]
	if member == "" {
		return ""
	}
	name, _ := rawjson.Text(rawjson.Member(rawjson.Member(body, "params"), member))
	return name
}

// takeBack tells the endpoint that no answer to a request is wanted. One that was on its way comes all the same; where no exchange ends
// without it, it is waited for no longer than lateAnswer.
func (s *session) takeBack(id, members string) {
	s.mu.Lock()
	r := s.asked[id]
	if r != nil {
		r.takenBack = true
	}
	s.mu.Unlock()
	if r == nil {
		return
	}
	if r.method == "tools/call" {
		s.agent.fleet.service.disownCall(r.about, s.agent)
	}
	s.sendNotice("notifications/cancelled", `{"requestId":`+id+members+`}`)
	if _, exchanges := s.link.(*httpLink); exchanges {
		return
	}
	s.agent.fleet.running.Go(func() {
		select {
		case <-time.After(lateAnswer):
			s.dropRequest(s.lifetime, id)
		case <-s.over:
		}
	})
}

// isTakenBack reports whether the agent wants no answer to a request any more.
func (s *session) isTakenBack(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.takenBack
}

// lateAnswer is the time in which an answer comes that was on its way when its request was taken back.
const lateAnswer = 2 * time.Second

// sendNotice sends a notification.
func (s *session) sendNotice(method, params string) {
	s.link.send(s.agent.fleet.lifetime, outgoing{method: method, body: s.encodeMessage("", method, params)})
}

func itoa(n int) string { return strconv.Itoa(n) }
