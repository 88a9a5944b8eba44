package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// perform does one operation.
func (a *agent) perform(op operation) {
	s := a.openSession()
	if s == nil {
		return
	}
	switch op.do {
	case listTools:
		s.askEndpoint("tools/list", "", "", "")
	case callTool:
		a.makeCall(s, op, 0)
	case giveUpCall:
		a.makeCall(s, op, time.Duration(op.number%400+1)*time.Millisecond/4)
	case readOffers:
		a.readOffer(s, op)
	case watchResource:
		a.watchOffer(s, op)
	case unwatch:
		a.unwatchOffer(s, op)
	case setLevel:
		if !a.modern() {
			s.askEndpoint("logging/setLevel", `{"level":"`+messages.LogLevels[op.number%len(messages.LogLevels)]+`"}`, "", "")
		}
	case leave:
		s.endSession("the agent has left", true)
	case abandon:
		s.endSession("the agent was killed", false)
	case misbehave:
		a.misbehave(s, op)
	}
}

// shownName returns the name of a tool in the agent's view.
func (a *agent) shownName(server, tool string) string {
	if a.plan.View != "" {
		return tool
	}
	return server + "__" + tool
}

// longNote is the length of a long argument: a line with it does not fit into the buffer of a reader.
const longNote = 70 << 10

// noteIn returns the further argument of a call: now and then a long one.
func noteIn(op operation) string {
	if op.number%48 != 9 {
		return ""
	}
	return `,"note":"` + strings.Repeat("n", longNote) + `"`
}

// makeCall calls a tool. After a time above 0 the agent gives the call up.
func (a *agent) makeCall(s *session, op operation, after time.Duration) {
	a.mu.Lock()
	a.called++
	id := fmt.Sprintf("a%d-%d", a.number, a.called)
	begin := history.Event{T: a.fleet.Now(), Side: history.Caller, Kind: history.Call, Server: op.server, Call: id, Tool: op.tool, By: a.plan.As, Agent: a.plan.Name}
	a.calls[id] = &openCall{event: begin, number: a.called, operation: op.number, asTask: wishesTask(a.fleet.Plan, op)}
	a.mu.Unlock()
	a.fleet.service.noteCaller(id, a.plan.As)
	a.fleet.recordEvent(begin)
	ctx, cancel := context.WithCancel(s.lifetime)
	defer cancel()
	params := `{"name":` + string(rawjson.AppendText(nil, a.shownName(op.server, op.tool))) + `,"arguments":{"call":"` + id + `","size":0` + noteIn(op) + `},"_meta":{"progressToken":"` + id + `"` + a.wantedLevel(op) + `}}`
	extra := ""
	if wishesTask(a.fleet.Plan, op) {
		after = 0 // it is the task that is cancelled
		if !a.modern() {
			params = withExtra(params, `"task":{}`)
		}
	}
	// A server may ask for input, by an answer, several times.
	for round := range maxRounds {
		r, body := s.newRequest("tools/call", withExtra(params, extra), id, "")
		if r == nil {
			if round > 0 {
				a.endParked(id)
			} else {
				a.endUnsent(id)
			}
			return
		}
		if after > 0 {
			a.fleet.running.Go(func() { a.cancelAfter(ctx, cancel, s, r, after) })
		}
		if op.number%16 == 3 && after == 0 {
			a.fleet.running.Go(func() { s.useTwice(ctx, r) })
		}
		exchange, hangUp := context.WithCancel(ctx)
		if after == 0 && a.losesConnection(s, op) {
			a.fleet.running.Go(func() { s.hangUpAfter(ctx, r, hangUp, time.Duration(op.number%400+1)*time.Millisecond/2) })
		}
		got, ok := s.sendRequest(exchange, r, body)
		hangUp()
		if !ok || s.isTakenBack(r) && isInputRequired(got.result) {
			return // who serves the call ends it
		}
		if isTask(got.result) {
			a.followTask(id, got.result)
			return
		}
		if extra != "" && op.number%3 != 0 {
			repeated := strings.Replace(params, `"progressToken":"`+id+`"`, `"`+againKey+`":true`, 1)
			s.askEndpoint("tools/call", withExtra(repeated, extra), "", usedState)
		}
		if !isInputRequired(got.result) {
			a.endCall(id, got)
			return
		}
		extra = s.inputFor(got.result, op.server, "tools/call", params)
	}
	a.endCall(id, answer{problem: []byte(`{"code":0,"message":"it asked for input without end"}`)})
}

// wantedLevel returns the member of _meta with which a call of the modern era asks for log messages, as every second one does. A server of the
// legacy era is asked for the level of its connection then, which delays no call and is no use of a lazy server.
func (a *agent) wantedLevel(op operation) string {
	if !a.modern() || op.number%2 == 0 {
		return ""
	}
	return `,"` + logLevelKey + `":"` + messages.LogLevels[op.number/2%len(messages.LogLevels)] + `"`
}

// losesConnection reports whether the connection of a call breaks under way, as one through a proxy does: that of every eighth call of the
// legacy era over HTTP, where that takes nothing back. It is so only where the answer can be read all the same.
func (a *agent) losesConnection(s *session, op operation) bool {
	h, ok := s.link.(*httpLink)
	return ok && !a.modern() && h.readsCancelled() && op.number%8 == 0
}

// useTwice sends another request with the id of one that has no answer yet.
func (s *session) useTwice(ctx context.Context, r *request) {
	select {
	case <-time.After(20 * time.Millisecond):
	case <-ctx.Done():
		return
	}
	if s.isOpen(r.id) {
		s.reuseID(r.id, reusedInUse)
	}
}

// hangUpAfter breaks the connection of a request after a time, if it has no answer by then. Nothing is taken back.
func (s *session) hangUpAfter(ctx context.Context, r *request, hangUp func(), after time.Duration) {
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return
	}
	s.mu.Lock()
	open := s.asked[r.id] == r && !s.parted
	s.mu.Unlock()
	if open {
		hangUp()
	}
}

// usedState is the name of a request that comes back a second time with the state and the answers of a round that is over: the call has ended since, or
// has asked something else.
const usedState = "used-state"

// againKey stands in the _meta of such a request, so that what is answered to it is not taken for the end of the call that it names.
const againKey = "chaos.sim/again"

// maxRounds bounds the times that one request asks for input.
const maxRounds = 10

// neverSent is the text of the end of a call that no session took.
const neverSent = "no session took the call"

// withExtra adds members to params, before _meta.
func withExtra(params, extra string) string {
	if extra == "" {
		return params
	}
	return "{" + extra + "," + params[1:]
}

// busyPause is the time that an agent leaves to a server that wants a request back and no input.
const busyPause = 50 * time.Millisecond

// inputFor returns the members with which a request comes back: the answers to what was asked, and the state. Where nothing was asked it
// waits first, because the server wants time.
func (s *session) inputFor(result []byte, server, method, params string) string {
	a := s.agent
	var parts []string
	if state := rawjson.Member(result, "requestState"); state != nil {
		parts = append(parts, `"requestState":`+string(state))
		a.mu.Lock()
		a.state, a.statefulMethod, a.statefulParams = string(state), method, params
		a.mu.Unlock()
		a.exposeState()
	}
	var asked map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(rawjson.Member(result, "inputRequests"), &asked) == nil && len(asked) > 0 {
		answers := make(map[string]json.RawMessage, len(asked))
		for _, name := range slices.Sorted(maps.Keys(asked)) {
			q := asked[name]
			call := s.recordConsulted(q.Method, q.Params)
			answers[name] = s.recordAdvice(history.Event{Method: q.Method, About: call, Server: server}, a.answerTo(q.Method, server))
		}
		b, err := json.Marshal(answers)
		if err == nil {
			parts = append(parts, `"inputResponses":`+string(b))
		}
	} else {
		time.Sleep(busyPause)
	}
	return strings.Join(parts, ",")
}

// cancelAfter takes a request back when its time has come, if it has no answer by then.
func (a *agent) cancelAfter(ctx context.Context, cancel context.CancelFunc, s *session, r *request, after time.Duration) {
	select {
	case <-time.After(after):
	case <-ctx.Done():
		return
	}
	s.mu.Lock()
	open := s.asked[r.id] == r && !s.parted
	s.mu.Unlock()
	if !open {
		return
	}
	// 2026-07-28, over HTTP: "closing the SSE response stream is itself the cancellation signal".
	if h, ok := s.link.(*httpLink); ok && a.modern() {
		if h.readsCancelled() {
			a.giveUp(r.about)
			cancel()
		}
		return
	}
	a.giveUp(r.about)
	s.takeBack(r.id, `,"reason":"the user has changed their mind"`)
	if after%(3*time.Millisecond/4) == 0 {
		s.reuseID(r.id, reusedFree)
	}
}

// giveUp records that the caller of a call gives it up, once.
func (a *agent) giveUp(call string) {
	a.mu.Lock()
	c := a.calls[call]
	if c != nil {
		c.givenUp = true
	}
	a.mu.Unlock()
	if c != nil {
		e := c.event
		e.Kind = history.GivenUp
		a.fleet.recordEvent(e)
	}
}

// endUnsent records the end of a call that no session took, because its agent has gone.
func (a *agent) endUnsent(call string) {
	a.giveUp(call)
	a.endCall(call, answer{problem: []byte(`{"code":0,"message":"` + neverSent + `"}`), untaken: true})
}

// endParked records the end of a call that waits for input which its agent, that has gone, gives nobody.
func (a *agent) endParked(call string) {
	a.giveUp(call)
	a.endCall(call, answer{result: []byte(leftAlone)})
}

// leftAlone stands for the result that an agent does not get.
const leftAlone = `{"content":[],"isError":true,"_meta":{"mcpvisor/outcome":"unknown","mcpvisor/class":"canceled"}}`

// endCall records the end of a call, once.
func (a *agent) endCall(call string, got answer) {
	a.fleet.service.forgetCall(call)
	a.mu.Lock()
	c := a.calls[call]
	delete(a.calls, call)
	a.mu.Unlock()
	if c == nil {
		return
	}
	e := c.event
	e.Kind, e.T = history.End, a.fleet.Now()
	e.Took = e.T - c.event.T
	isHidden := a.mayHide(&c.event) && isUnknown(errorText(got.problem))
	if got.untaken || isHidden || isNoTask(errorText(got.problem)) {
		e.Name = history.Untaken
	}
	if got.unseen {
		e.Name = history.Unseen
	}
	if got.problem == nil {
		read := readCall(got.result)
		e.Outcome, e.Class, e.Conn, e.Value = read.outcome, read.class, read.conn, read.value
		if read.outcome != messages.OutcomeResult && read.outcome != messages.OutcomeToolError {
			e.Text = read.text
		}
		if read.call != "" && read.call != call {
			e.Text = "it got the answer of the call " + read.call
		}
		// A server says in each result which call it is of; a result without that text belongs to another one.
		if read.outcome == messages.OutcomeResult && read.call == "" {
			a.fleet.reportFinding("I27", e.Server, "call "+call+" of "+a.plan.Name+" ended with a result that says nothing of the call: "+messages.Line(string(got.result), 200))
		}
	} else {
		e.Outcome, e.Class, e.Text = a.refusalOf(c.event.Tool, got)
		if isHidden {
			e.Outcome, e.Class = messages.OutcomeNotSent, messages.ClassNone // a view of one server refuses in the words of that server
		}
	}
	a.fleet.Check(e.Server, "the answer to an agent", e.Text)
	a.fleet.Record(e)
}

// refusalOf returns what an error says of a call: the server's own refusal, or the gateway's.
func (a *agent) refusalOf(tool string, got answer) (messages.Outcome, messages.Class, string) {
	text := errorText(got.problem)
	if text == neverSent {
		return messages.OutcomeNotSent, messages.ClassCanceled, text
	}
	if outcome := outcomeOf(got.problem); outcome != "" {
		return outcome, messages.ClassCanceled, text
	}
	// Servers over HTTP have sessions, too: only the status tells whose was not found.
	if isGateways(text, tool) || got.status == http.StatusNotFound {
		return messages.OutcomeNotSent, messages.ClassNone, text
	}
	return messages.OutcomeRejected, messages.ClassRejected, text
}

// outcomeOf returns the outcome that the gateway states in an error, as for a request that comes back to a call which is over; empty if it states
// none.
func outcomeOf(problem []byte) messages.Outcome {
	text, _ := rawjson.Text(rawjson.Member(rawjson.Member(problem, "data"), "mcpvisor/outcome"))
	return messages.Outcome(text)
}

// isGateways reports whether the text of an error is one of the gateway's or of the endpoint's own. That of an unknown tool begins like the
// one of the harness's servers, which name the tool as they know it.
func isGateways(text, tool string) bool {
	if rest, ok := strings.CutPrefix(text, "Unknown tool: "); ok {
		return rest != tool
	}
	for _, own := range []string{neverSent, "the session has ended", "the endpoint is being closed", "too many", "there is no server"} {
		if strings.HasPrefix(text, own) {
			return true
		}
	}
	return isNoTask(text)
}

// isNoTask reports whether the text of an error is that of the gateway which refuses to let a call become a task.
func isNoTask(text string) bool {
	return strings.HasPrefix(text, "the tool ") && strings.HasSuffix(text, " cannot run as a task") || strings.HasPrefix(text, tooManyTasks)
}

var errNoOffer = errors.New("no server of the view has resources")

// offerFor returns a server of the view that has resources.
func (a *agent) offerFor(op operation) (string, error) {
	all := a.fleet.offers()
	switch {
	case len(all) == 0:
		return "", errNoOffer
	case a.plan.View != "" && !slices.Contains(all, a.plan.View):
		return "", errNoOffer
	case a.plan.View != "":
		return a.plan.View, nil
	case a.plan.Held != "" && slices.Contains(all, op.server):
		return op.server, nil
	}
	return all[op.number%len(all)], nil
}

// readOffer lists or reads something beside tools.
func (a *agent) readOffer(s *session, op operation) {
	server, err := a.offerFor(op)
	if err != nil {
		s.askEndpoint([]string{"resources/list", "prompts/list"}[op.number%2], "", "", "")
		return
	}
	uri := "chaos://" + server + "/one"
	prompt := a.shownName(server, "greet")
	switch op.number % 5 {
	case 0:
		s.askEndpoint([]string{"resources/list", "resources/list", "resources/templates/list"}[op.number/5%3], "", "", "")
	case 1:
		s.askEndpoint("prompts/list", "", "", "")
	case 2:
		a.askWithInput(s, "resources/read", `{"uri":"`+uri+`"}`, uri, server)
	case 3:
		a.askWithInput(s, "prompts/get", `{"name":"`+prompt+`","arguments":{"who":"`+a.plan.Name+`"}}`, prompt, server)
	default:
		ref, about := `{"type":"ref/prompt","name":"`+prompt+`"}`, prompt
		if op.number/5%2 == 1 {
			about = scenario.OfferURI(server, "{name}")
			ref = `{"type":"ref/resource","uri":"` + about + `"}`
		}
		s.askEndpoint("completion/complete", `{"ref":`+ref+`,"argument":{"name":"who","value":"`+completedValue+`"},"context":{"arguments":{"to":"all"}}}`, about, "")
	}
}

// completedValue is the beginning of an argument for which agents want proposals.
const completedValue = "o"

// askWithInput asks, and gives the input that is asked for.
func (a *agent) askWithInput(s *session, method, params, about, server string) {
	extra := ""
	for range maxRounds {
		got, ok := s.askEndpoint(method, withExtra(params, extra), about, "")
		if !ok || !isInputRequired(got.result) {
			return
		}
		extra = s.inputFor(got.result, server, method, params)
	}
}

// watchOffer subscribes to a resource: in the modern era by a subscription that stands, with the changes of lists.
func (a *agent) watchOffer(s *session, op operation) {
	server, err := a.offerFor(op)
	uri := "chaos://" + server + "/one"
	if !a.modern() {
		if err == nil {
			a.watchTwice(s, uri, op)
		}
		return
	}
	wanted := `"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true`
	if err == nil {
		uris := `"` + uri + `"`
		if op.number%3 == 0 {
			uris += "," + uris
		}
		wanted += `,"resourceSubscriptions":[` + uris + `]`
	} else {
		uri = ""
	}
	ctx, cancel := context.WithCancel(s.lifetime)
	r, body := s.newRequest("subscriptions/listen", `{"notifications":{`+wanted+`}}`, uri, "")
	if r == nil {
		cancel()
		return
	}
	a.mu.Lock()
	a.listens[r.id] = cancel
	a.mu.Unlock()
	a.fleet.running.Go(func() {
		defer cancel()
		s.sendRequest(ctx, r, body)
		a.mu.Lock()
		delete(a.listens, r.id)
		a.mu.Unlock()
	})
}

// watchTwice subscribes to a resource, and every third time once more: at once, beside the first request, or when that is answered. A session
// watches a resource or does not, however often it has asked.
func (a *agent) watchTwice(s *session, uri string, op operation) {
	subscribe := func() { s.askEndpoint("resources/subscribe", `{"uri":"`+uri+`"}`, uri, "") }
	switch op.number / 7 % 6 {
	case 0:
		a.fleet.running.Go(func() {
			select {
			case <-time.After(time.Millisecond): // of two requests of one instant chance would decide which comes first
				subscribe()
			case <-s.over:
			}
		})
		subscribe()
	case 1:
		subscribe()
		subscribe()
	default:
		subscribe()
	}
}

// unwatchOffer ends a subscription.
func (a *agent) unwatchOffer(s *session, op operation) {
	if !a.modern() {
		if server, err := a.offerFor(op); err == nil {
			uri := "chaos://" + server + "/one"
			s.askEndpoint("resources/unsubscribe", `{"uri":"`+uri+`"}`, uri, "")
		}
		return
	}
	a.mu.Lock()
	id := ""
	for candidate := range a.listens {
		if id == "" || candidate < id {
			id = candidate
		}
	}
	cancel := a.listens[id]
	delete(a.listens, id)
	a.mu.Unlock()
	if cancel == nil {
		return
	}
	a.recordEvent(history.Event{Kind: history.Ended, Epoch: s.epoch, ID: id, Method: "subscriptions/listen"})
	if a.plan.Over == scenario.OverHTTP {
		cancel()
		return
	}
	s.takeBack(id, "")
}
