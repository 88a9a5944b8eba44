package drills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// What an interceptor does with one request.
const (
	passOn        = "passes it on"
	refuseBefore  = "refuses it"
	refuseAfter   = "refuses what came"
	changeParams  = "changes it"
	redirect      = "sends it to the other server"
	misdirect     = "sends it where nothing is"
	changeResult  = "changes the result"
	breakResult   = "makes the result a text"
	answerItself  = "answers by itself"
	sendTwice     = "sends it twice"
	keepFirst     = "sends it a second time where nothing is, and keeps the first answer"
	takeSecond    = "sends it a second time where nothing is"
	askInVain     = "asks for what the server does not have"
	wrapError     = "wraps the error"
	returnNothing = "returns nothing"
	panicBefore   = "panics"
	panicAfter    = "panics when it is answered"
	stayBefore    = "does not return"
	stayAfter     = "does not return when it is answered"
)

// Most interceptors do no harm, so that the inner ones are reached.
var harmless = []string{passOn, passOn, changeParams, changeResult, wrapError, sendTwice, redirect, keepFirst}

var harmful = []string{refuseBefore, refuseAfter, misdirect, takeSecond, askInVain, breakResult, answerItself, returnNothing, panicBefore, panicAfter, stayBefore, stayAfter}

// errOfInterceptor is the error of an interceptor of its own.
var errOfInterceptor = errors.New("not in this house")

// interceptedRequest is a request as the manager hands it to an interceptor, or sends it to a server.
type interceptedRequest struct{ method, server, name, arguments, meta string }

// interceptedEnd is how a request ends: with an error of the interceptors, with one of the manager, or with a result.
type interceptedEnd struct {
	own, lost error
	text      string
	isError   bool
}

// interceptorDrill is two servers, a chain of interceptors, and the one request that is under way.
type interceptorDrill struct {
	*stage
	m     *supervisor.Manager
	a     *agent
	plans []string

	mu   sync.Mutex
	seen []string // what the interceptors and the servers got, in order
	free chan struct{}
}

// playInterceptors sends requests of all kinds through interceptors that do all that one can do, and compares what each of them and the
// servers get, and how the request ends for its caller, with what the plan says.
func playInterceptors(s *stage) {
	d := &interceptorDrill{stage: s, free: make(chan struct{})}
	servers := []*server{newServer("north", "work", "fail"), newServer("south", "work", "fail")}
	for _, srv := range servers {
		srv.offers["resources"] = []map[string]any{{"name": "one", "uri": "drill://" + srv.name + "/one"}, {"name": "both", "uri": "drill://one"}}
		srv.offers["prompts"] = []map[string]any{{"name": "greet"}, {"name": "leave"}}
		srv.declared = map[string]any{"completions": struct{}{}}
		srv.instead = d.noteArrival
		srv.handle = func(_ context.Context, c *toolCall) (any, error) {
			if c.tool == "fail" {
				return nil, errors.New("it failed")
			}
			return textResult(srv.name + " " + string(c.arguments)), nil
		}
	}
	servers[1].offers["resources"] = servers[1].offers["resources"][:1]
	cfg := supervisor.Config{InlineInterceptors: s.isOneIn(3)}
	for i := range 1 + s.rng.IntN(3) {
		d.plans = append(d.plans, "")
		cfg.Interceptors = append(cfg.Interceptors, d.interceptor(i))
	}
	if d.m = s.connectServers(cfg, servers...); d.m == nil {
		return
	}
	if d.a = s.joinAgent(s.openGateway(gateway.Config{}), serve.Principal{Name: "anna"}, serve.Path{}, nil); d.a == nil {
		return
	}
	for range 12 {
		for i := range d.plans {
			d.plans[i] = pickOne(s, harmless...)
			if s.isOneIn(4) {
				d.plans[i] = pickOne(s, harmful...)
			}
			if cfg.InlineInterceptors && (d.plans[i] == stayBefore || d.plans[i] == stayAfter) {
				d.plans[i] = passOn
			}
		}
		if !d.playRequest() {
			break
		}
	}
	d.mu.Lock()
	d.seen = nil
	d.mu.Unlock()
	close(d.free)
	s.settleAll()
	for _, line := range d.seen {
		if strings.HasPrefix(line, "server") {
			s.reportFinding("I20", "north", "an interceptor sent its request after the end of it, and %s", line)
			return
		}
	}
}

// noteArrival notes what a server gets, and answers completions.
func (d *interceptorDrill) noteArrival(c *conn, m message) bool {
	var p struct {
		Name, URI string
		Arguments json.RawMessage
		Meta      map[string]json.RawMessage `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p)
	switch m.Method {
	case "tools/call", "resources/read", "prompts/get", "completion/complete", "ping":
		meta := string(p.Meta["mark"])
		d.note("server", interceptedRequest{m.Method, c.server.name, p.Name + p.URI, string(p.Arguments), meta})
	}
	if m.Method == "completion/complete" {
		c.sendResult(m, map[string]any{"completion": map[string]any{"values": []string{"one"}}})
	}
	return m.Method == "completion/complete"
}

func (d *interceptorDrill) note(who string, q interceptedRequest) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, fmt.Sprintf("%s got %+v", who, q))
}

// interceptor is number i of the chain.
func (d *interceptorDrill) interceptor(i int) supervisor.Interceptor {
	return func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
		if d.plans[i] == "" || !isJudged(r.Method, messages.CallerOf(ctx)) {
			return next(ctx, r)
		}
		meta := strings.TrimSuffix(strings.TrimPrefix(string(r.Meta), `{"mark":`), "}")
		d.note(fmt.Sprintf("interceptor %d of %q", i, messages.CallerOf(ctx)), interceptedRequest{r.Method, r.Server, r.Name, string(r.Arguments), meta})
		sent := *r
		switch d.plans[i] {
		case refuseBefore:
			return nil, errOfInterceptor
		case returnNothing:
			return nil, nil
		case panicBefore:
			panic("the interceptor is broken")
		case stayBefore:
			<-d.free
			return next(context.WithoutCancel(ctx), &sent) // too late: it sends nothing
		case answerItself:
			return &supervisor.Response{Result: json.RawMessage(`{"content":[{"type":"text","text":"by itself"}]}`)}, nil
		case changeParams:
			sent.Method, sent.Arguments, sent.Meta = "changed", json.RawMessage(fmt.Sprintf(`{"by":%d}`, i)), json.RawMessage(fmt.Sprintf(`{"mark":%d}`, i))
		case redirect:
			sent = redirectRequest(sent)
		case misdirect:
			sent.Server = "nowhere"
		case askInVain:
			sent = askForNothing(sent)
		}
		res, err := next(ctx, &sent)
		if err != nil && res == nil {
			d.note(fmt.Sprintf("interceptor %d, for its response,", i), interceptedRequest{})
		}
		switch d.plans[i] {
		case refuseAfter:
			return res, errOfInterceptor
		case panicAfter:
			panic("the interceptor is broken")
		case stayAfter:
			<-d.free
		case sendTwice:
			return next(ctx, &sent)
		case keepFirst, takeSecond:
			if err != nil || res == nil {
				return res, err
			}
			sent.Server = "nowhere"
			second, secondErr := next(ctx, &sent)
			if d.plans[i] == takeSecond {
				return second, secondErr
			}
		case wrapError:
			if err != nil {
				err = fmt.Errorf("wrapped: %w", err)
			}
		case changeResult:
			if err == nil && res != nil {
				res = &supervisor.Response{Server: res.Server, Name: res.Name, Result: json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":"changed by %d"}],"isError":%t}`, i, !res.IsError)), IsError: !res.IsError}
			}
		case breakResult:
			if err == nil && res != nil {
				res = &supervisor.Response{Result: json.RawMessage(`"text"`)}
			}
		}
		return res, err
	}
}

// isJudged reports whether the drill judges requests of a method: the gateway asks lists when it likes, in the name of its agent or in its own.
func isJudged(method, caller string) bool {
	return strings.HasSuffix(method, "/list") && caller == "clara" || slices.Contains([]string{"tools/call", "resources/read", "prompts/get", "completion/complete", "ping", "changed"}, method)
}

// redirectRequest sends a request to south, whatever its name was: qualified names become plain.
func redirectRequest(r supervisor.Request) supervisor.Request {
	r.Server = "south"
	switch {
	case strings.Contains(r.Name, "__work"):
		r.Name = "work"
	case strings.Contains(r.Name, "__fail"):
		r.Name = "fail"
	case strings.Contains(r.Name, "__greet"):
		r.Name = "greet"
	case strings.HasPrefix(r.Name, "drill://"):
		r.Name = "drill://south/one"
	}
	return r
}

// askForNothing sends a read where the server has nothing, and any other request where no server is.
func askForNothing(r supervisor.Request) supervisor.Request {
	if r.Server = "nowhere"; strings.HasPrefix(r.Name, "drill://") {
		r.Server, r.Name = "south", "drill://south/nothing"
	}
	return r
}

// sentRequest is one kind of request, as the first interceptor gets it and as a caller sends it.
type sentRequest struct {
	words string
	first interceptedRequest
	send  func(ctx context.Context) (text string, isError bool, err error)
	// isAgents says that an agent sends it, who gets errors in words.
	isAgents bool
}

// drawRequest draws a request.
func (d *interceptorDrill) drawRequest() sentRequest {
	n := d.rng.IntN(100)
	args, meta := fmt.Sprintf(`{"n":%d}`, n), fmt.Sprint(n)
	option := supervisor.WithMeta(json.RawMessage(`{"mark":` + meta + `}`))
	tool := pickOne(d.stage, "work", "work", "fail")
	ofCall := func(res *supervisor.Result, err error) (string, bool, error) {
		return res.Text(), res != nil && res.IsError, err
	}
	ofRead := func(res *supervisor.ResourceResult, err error) (string, bool, error) {
		if err != nil {
			return "", false, err
		}
		return resultText(res.Raw), false, nil
	}
	ofPrompt := func(res *supervisor.PromptResult, err error) (string, bool, error) {
		if err != nil {
			return "", false, err
		}
		return resultText(res.Raw), false, nil
	}
	switch d.rng.IntN(10) {
	case 8:
		return sentRequest{"a list", interceptedRequest{"prompts/list", "north", "", "", ""}, func(ctx context.Context) (string, bool, error) {
			_, err := d.m.Prompts(ctx, "north")
			return "", false, err
		}, false}
	case 0:
		return sentRequest{"a call", interceptedRequest{"tools/call", "north", tool, args, meta}, func(ctx context.Context) (string, bool, error) {
			return ofCall(d.m.CallServerTool(ctx, "north", tool, json.RawMessage(args), option))
		}, false}
	case 1:
		return sentRequest{"a call by qualified name", interceptedRequest{"tools/call", "", "mcp__north__" + tool, args, meta}, func(ctx context.Context) (string, bool, error) {
			return ofCall(d.m.CallTool(ctx, "mcp__north__"+tool, json.RawMessage(args), option))
		}, false}
	case 2:
		return sentRequest{"a read", interceptedRequest{"resources/read", "north", "drill://north/one", "", meta}, func(ctx context.Context) (string, bool, error) {
			return ofRead(d.m.ReadServerResource(ctx, "north", "drill://north/one", option))
		}, false}
	case 3:
		return sentRequest{"a read by its URI", interceptedRequest{"resources/read", "", "drill://one", "", meta}, func(ctx context.Context) (string, bool, error) {
			return ofRead(d.m.ReadResource(ctx, "drill://one", option))
		}, false}
	case 4:
		return sentRequest{"a prompt", interceptedRequest{"prompts/get", "north", "greet", `{"n":"1"}`, meta}, func(ctx context.Context) (string, bool, error) {
			return ofPrompt(d.m.GetServerPrompt(ctx, "north", "greet", map[string]string{"n": "1"}, option))
		}, false}
	case 5:
		return sentRequest{"a prompt by qualified name", interceptedRequest{"prompts/get", "", "mcp__north__greet", `{"n":"1"}`, meta}, func(ctx context.Context) (string, bool, error) {
			return ofPrompt(d.m.GetPrompt(ctx, "mcp__north__greet", map[string]string{"n": "1"}, option))
		}, false}
	case 6:
		return sentRequest{"a completion", interceptedRequest{"completion/complete", "north", "", "", ""}, func(ctx context.Context) (string, bool, error) {
			_, err := d.m.Complete(ctx, "north", messages.CompleteRequest{Prompt: "greet", Argument: "who"})
			return "", false, err
		}, false}
	case 7:
		return sentRequest{"a ping", interceptedRequest{"ping", "north", "", "", ""}, func(ctx context.Context) (string, bool, error) {
			_, err := d.m.Ping(ctx, "north")
			return "", false, err
		}, false}
	}
	return sentRequest{"an agent's call", interceptedRequest{"tools/call", "north", tool, args, meta}, func(ctx context.Context) (string, bool, error) {
		raw, err := d.a.callMethod(ctx, "tools/call", map[string]any{"name": "north__" + tool, "arguments": json.RawMessage(args), "_meta": map[string]any{"mark": n}})
		var r struct{ IsError bool }
		_ = json.Unmarshal(raw, &r)
		return textOf(raw), r.IsError, err
	}, true}
}

// resultText returns the text in a result of a read, a prompt or a call.
func resultText(raw json.RawMessage) string {
	var r struct {
		Content, Contents []struct{ Text string }
		Messages          []struct{ Content struct{ Text string } }
	}
	switch err := json.Unmarshal(raw, &r); {
	case err != nil:
		return string(raw)
	case len(r.Content) == 1:
		return r.Content[0].Text
	case len(r.Contents) == 1:
		return r.Contents[0].Text
	case len(r.Messages) == 1:
		return r.Messages[0].Content.Text
	}
	return string(raw)
}

// playRequest sends one request and judges it.
func (d *interceptorDrill) playRequest() bool {
	q := d.drawRequest()
	d.mu.Lock()
	d.seen = nil
	d.mu.Unlock()
	caller := "anna"
	if !q.isAgents {
		if caller = pickOne(d.stage, "", "berta"); q.words == "a list" {
			caller = "clara"
		}
	}
	foreseen := &foreseenChain{plans: d.plans, kind: q.first.method, caller: caller}
	end := foreseen.invoke(0, q.first)
	d.addStory("%s, of which the interceptors do this: %q", q.words, d.plans)
	ctx, cancel := context.WithTimeout(d.ctx, time.Second)
	defer cancel()
	if caller != "" && !q.isAgents {
		ctx = supervisor.WithCaller(ctx, caller)
	}
	began := time.Now()
	text, isError, err := q.send(ctx)
	took := time.Since(began)
	d.settleAll()
	d.mu.Lock()
	seen := slices.Clone(d.seen)
	d.mu.Unlock()
	if foreseen.isStuck {
		if q.isAgents { // it has given up, and learns nothing of the end
			d.letPass(time.Second)
			return true
		}
		if took != 1100*time.Millisecond {
			d.reportFinding("I2", "north", "an interceptor does not return, and its caller, who waits for 1s, was free after %s", took)
			return false
		}
	} else if took != 0 {
		d.reportFinding("I2", "north", "%s took %s", q.words, took)
		return false
	}
	if !slices.Equal(seen, foreseen.seen) {
		d.reportFinding("I20", "north", "%s: seen was %q, and must be %q", q.words, seen, foreseen.seen)
		return false
	}
	return d.judgeEnd(q, foreseen, end, text, isError, err)
}

// judgeEnd compares how a request ended with what is foreseen.
func (d *interceptorDrill) judgeEnd(q sentRequest, f *foreseenChain, end interceptedEnd, text string, isError bool, err error) bool {
	hasResult := !isFixed(q.first.method)
	switch { // by the rules of the manager
	case f.isStuck || f.isBroken:
	case end.own == nil && end.lost == nil && !hasResult && f.sends == 0:
		end.own = errOfManager
	case end.own == nil && end.lost == nil && hasResult && end.text == notAnObject:
		end.own = errOfManager
	}
	outcome := messages.OutcomeNotSent
	switch {
	case f.mayHaveRun:
		outcome = messages.OutcomeUnknown
	case f.lost != nil && errors.Is(f.lost, supervisor.ErrUnknownResource):
		outcome = messages.OutcomeRejected
	}
	isRefused := f.isStuck || f.isBroken || end.own != nil || end.lost != nil
	if q.isAgents {
		if isRefused != (err != nil || isError && strings.Contains(text, "server ")) && !(isError && isRefused) {
			d.reportFinding("I20", "north", "%s: it is refused: %t, and ended with %q, %v", q.words, isRefused, text, err)
			return false
		}
		if isRefused {
			return true
		}
	}
	if !isRefused {
		if err != nil || hasResult && text != end.text || q.first.method == "tools/call" && isError != end.isError {
			d.reportFinding("I20", "north", "%s ended with %q (error: %t), %v, and must with %q (error: %t)", q.words, text, isError, err, end.text, end.isError)
			return false
		}
		return true
	}
	var ok bool
	switch {
	case f.isStuck && f.lost != nil:
		ok = errors.Is(err, f.lost)
	case f.isStuck:
		ok = errors.Is(err, context.DeadlineExceeded)
	case !f.isBroken && errors.Is(end.own, errOfInterceptor):
		ok = errors.Is(err, errOfInterceptor) && errors.Is(err, supervisor.ErrDenied)
	case end.own != nil || f.isBroken:
		ok = errors.Is(err, supervisor.ErrDenied)
	default:
		ok = errors.Is(err, end.lost) && !errors.Is(err, supervisor.ErrDenied)
	}
	if !ok || messages.OutcomeOf(err) != outcome {
		d.reportFinding("I20", "north", "%s ended with %v, outcome %s, and must with %+v, outcome %s (stuck: %t, panic: %t)", q.words, err, messages.OutcomeOf(err), end, outcome, f.isStuck, f.isBroken)
	}
	return ok && messages.OutcomeOf(err) == outcome
}
