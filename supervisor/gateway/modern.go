package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// modernAgents are the agents of the modern era of one principal. They have no sessions: what a server asks about their requests is
// answered by the principal, and by nobody else.
type modernAgents struct {
	g         *Gateway
	principal string
	answerer  messages.Answerer
	// windows are those of the agents over HTTP, which nothing tells apart.
	windows *agentWindows
	// share counts the bytes that are kept without a request that waits: the arguments of suspended calls and of tasks, the results of
	// calls that have ended while their agent was asked, and open questions.
	share *budget.Share

	mu sync.Mutex
	// running are the requests that their servers have not answered.
	running map[*modernCall]struct{}
}

// agentsOf returns the agents of a principal.
func (g *Gateway) agentsOf(principal string) *modernAgents {
	if known, ok := g.agents.Load(principal); ok {
		return known.(*modernAgents)
	}
	a := &modernAgents{g: g, principal: principal, running: map[*modernCall]struct{}{}, windows: g.newWindows(g.shared)}
	a.answerer = messages.Answerer{Relays: true, Elicit: a.answerElicit, Sample: a.answerSample, Roots: a.answerRoots, Log: a.passLog}
	a.share = g.kept.Open(principal)
	known, raced := g.agents.LoadOrStore(principal, a)
	if raced {
		a.share.Close()
	}
	return known.(*modernAgents)
}

// keptBytes bounds what all principals together have in the shares of modernAgents.
const keptBytes = 256 << 20

// modernCall is one request of an agent of the modern era, as long as its server works on it or its result waits for the agent; and a
// call of either era that its agent has taken over as a task.
type modernCall struct {
	agents *modernAgents
	to     named
	// agent is the one that asks, on lines; nil over HTTP, where nothing tells the agents of a principal apart.
	agent *serve.Agent
	// number says in which order the requests of agents began.
	number int64
	// arguments identify the request beside its names; they belong to the call, until it has ended at its server. kept is the number of
	// bytes that its principal's share counts of them, and afterwards of a result that waits for the agent; mu guards it.
	arguments []byte
	kept      int64
	cancel    context.CancelCauseFunc
	// wake says that there are questions; done is closed when the call has ended, after result and problem are set.
	wake, done chan struct{}
	result     []byte
	problem    *serve.Error

	mu sync.Mutex
	suspension
	// request is the one that waits for the call, with its progress token; nil while none does.
	request *serve.Request
	token   []byte
	// capabilities is what the agent has declared with its last request, as far as it can be asked at all.
	capabilities []byte
	// id names the call in states; empty as long as it has not asked. how says how it has ended, once it is over.
	id, how string
	answers map[string]chan agentAnswer
	// asking ends the requests with which agents are asked the open questions of a task, by the ids of the questions.
	asking map[string]context.CancelFunc
	// wish is set for a call that may become a task of its agent, task once it has become one; tasked is closed when its server says so,
	// once, by the goroutine of the call. handed is true when the agent has the task.
	wish              *taskWish
	task              *task
	tasked            chan struct{}
	announced, handed bool
	// unplaced is true once there was no place for the task. Only the goroutine of the call uses it.
	unplaced bool
	expiry   *time.Timer
	// unbind parts a call that has asked from the credential of its agent, with which it would end.
	unbind func() bool
}

// agentAnswer is an agent's answer to a question: a result, or the error that its server gets, or errCannotAsk.
type agentAnswer struct {
	result []byte
	err    error
}

// becameTask tells the waiting request that the call is a task. The goroutine of the call calls it.
func (c *modernCall) becameTask() {
	if !c.announced {
		c.announced = true
		close(c.tasked)
	}
}

// newCall returns the call of a request.
func (g *Gateway) newCall(q *outgoing) *modernCall {
	c := &modernCall{agents: g.agentsOf(q.r.Session.Principal.Name), to: q.to, wish: q.wish}
	if q.r.Header == nil {
		c.agent = q.r.Session.Agent()
	}
	c.setRequest(q.r)
	return c
}

// setRequest makes a request the one that waits. The caller holds mu, or nobody else knows the call.
func (c *modernCall) setRequest(r *serve.Request) {
	c.request, c.token = r, progressToken(r.Meta)
}

// closeCall records how the call has ended, and gives back what a result took that waited for the agent. A task goes on, and is asked about by its
// id; of every other call the questions without an answer find another one. The caller holds mu.
func (c *modernCall) closeCall(how string) {
	c.how, c.request = how, nil
	if !c.handed {
		c.refuseQuestions(errCannotAsk)
	}
	if c.finished {
		c.giveBack()
	}
	if c.unbind != nil {
		c.unbind()
	}
}

// wakeUp makes the waiting request look for questions.
func (c *modernCall) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// waitingRequest returns the request that waits for the call, nil if none does.
func (c *modernCall) waitingRequest() (r *serve.Request, token []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.request, c.token
}

// passProgress passes a progress notification on to the request that waits, or to the session of the task; without one it is lost.
//
// 2025-11-25: "The progressToken provided in the initial request remains valid throughout the task lifetime." 2026-07-28: progress
// notifications "are not supported on tasks".
func (c *modernCall) passProgress(params json.RawMessage) {
	c.mu.Lock()
	r, token, t := c.request, c.token, c.task
	handed := c.handed
	c.mu.Unlock()
	if token == nil {
		return
	}
	if params = withToken(params, token); params == nil {
		return
	}
	switch {
	case handed && t.agent != nil:
		t.agent.Notify("progress "+t.id, "notifications/progress", withRelatedTask(params, t.id))
	case r != nil:
		r.Notify("notifications/progress", params)
	}
}

// callKey leads from the context of a request to its modernCall.
type callKey struct{}

// asksAgents reports whether requests of a method may be answered with a question.
//
// 2026-07-28: "Servers MUST NOT send InputRequiredResult responses on any other client requests."
func asksAgents(method string) bool {
	return method == "tools/call" || method == "prompts/get" || method == "resources/read"
}

// mayBeAsked reports whether a request may be answered with a question, and its agent can be asked anything.
func mayBeAsked(r *serve.Request) bool {
	if !asksAgents(r.Method) {
		return false
	}
	for _, ability := range []string{"elicitation", "sampling", "roots"} {
		if !rawjson.IsNull(rawjson.Member(r.Capabilities, ability)) {
			return true
		}
	}
	return false
}

// performModern performs a request of the modern era. If its server may ask in the middle of it, as servers of the legacy era do, the
// request runs on a goroutine of its own, and the agent gets the questions as a result.
func (g *Gateway) performModern(ctx context.Context, q *outgoing) ([]byte, *serve.Error) {
	r, server := q.r, q.to.server
	defer g.raiseLevel(r, server)()
	if q.state != nil {
		if id, round, ok := g.openHandle(q); ok {
			return g.resumeCall(ctx, r, id, round, q.responses)
		}
		back, err := g.afterSignIn(ctx, q)
		if err != nil {
			return q.fail(err)
		}
		if back {
			q.state, q.responses = nil, nil // they are of this hop
		}
	}
	wishes, e := g.forwardOptions(q)
	if e != nil {
		return nil, e
	}
	c := g.newCall(q)
	if c.token != nil {
		wishes.ProgressParams = c.passProgress
	}
	suspendable := mayBeAsked(r) && g.all.Of(server).EraOf(server) != messages.EraModern
	if !suspendable && q.wish == nil {
		c.agents.begin(c)
		defer c.agents.finish(c)
		return g.sendRequest(c.contextOf(ctx), q, wishes)
	}
	g.startCall(c.detach(ctx, q), q, c, wishes)
	return g.awaitCall(ctx, r, c)
}

// detach prepares a call to outlive its request, whose bytes end with it, and returns the context of the call.
func (c *modernCall) detach(ctx context.Context, q *outgoing) context.Context {
	q.arguments, q.capabilities = bytes.Clone(q.arguments), bytes.Clone(q.capabilities)
	c.arguments, c.capabilities = q.arguments, q.capabilities
	c.wake, c.done, c.tasked = make(chan struct{}, 1), make(chan struct{}), make(chan struct{}) // capacity 1: several questions wake once
	c.answers = map[string]chan agentAnswer{}
	ctx, c.cancel = context.WithCancelCause(c.contextOf(context.WithoutCancel(ctx)))
	return ctx
}

// startCall performs a detached call on a goroutine of its own.
func (g *Gateway) startCall(own context.Context, q *outgoing, c *modernCall, wishes *wire.Options) {
	if len(q.capabilities) > 0 {
		wishes.Capabilities = q.capabilities
	}
	if c.wish != nil {
		principal := q.r.Session.Principal
		wishes.OnTask = func(s messages.TaskStatus) { c.noteTask(principal, s) }
		g.outliveConnection(q)
	}
	c.agents.begin(c)
	g.work.Go(func() {
		defer c.cancel(nil)
		defer context.AfterFunc(g.lifetime, func() { c.cancel(context.Canceled) })()
		c.runCall(func() ([]byte, *serve.Error) {
			return g.sendRequest(own, q, wishes)
		})
	})
}

// runCall performs the call to its end. A panic costs this call only.
func (c *modernCall) runCall(send func() ([]byte, *serve.Error)) {
	defer func() {
		if recover() != nil {
			c.result, c.problem = nil, &serve.Error{Code: serve.CodeInternal, Message: "a defect of mcpvisor ended the request"}
		}
		c.agents.finish(c)
		c.mu.Lock()
		c.end()
		c.arguments = nil
		c.giveBack()
		c.keepResult()
		c.mu.Unlock()
		if c.task != nil {
			c.finishTask()
		}
		close(c.done)
		if c.task != nil {
			c.agents.g.tellTask(c.task)
		}
	}()
	c.result, c.problem = send()
}

// keepArguments has the principal's share count the arguments, which the call keeps when its request has an answer, once; false if that is too much, or the
// call has ended. The caller holds mu.
func (c *modernCall) keepArguments() bool {
	if c.finished {
		return false
	}
	if c.kept == 0 {
		n := int64(len(c.arguments))
		if c.agents.share.Take(n) != nil {
			return false
		}
		c.kept = n
	}
	return true
}

// keepResult has the principal's share count the result of a call that has ended while its agent was asked. One that is too much is dropped, and the
// agent is told that its call has run. The caller holds mu.
func (c *modernCall) keepResult() {
	if c.stage != ended {
		return
	}
	n := int64(len(c.result))
	if c.problem != nil {
		n = int64(problemSize(c.problem))
	}
	if c.agents.share.Take(n) == nil {
		c.kept = n
		return
	}
	c.result, c.problem = nil, &serve.Error{Code: serve.CodeBusy, Data: unknownOutcome(),
		Message: "the call has ended while you were asked, and its answer was dropped: too many bytes are kept for this agent. " +
			"It may have run: look at what it would have changed before calling again"}
}

// problemSize returns the number of bytes that an error keeps.
func problemSize(e *serve.Error) int { return len(e.Raw) + len(e.Message) + len(e.Data) }

// giveBack gives the principal's share what the call has taken of it. The caller holds mu.
func (c *modernCall) giveBack() {
	c.agents.share.Give(c.kept)
	c.kept = 0
}

func (a *modernAgents) begin(c *modernCall) {
	c.number = lastRequest.Add(1)
	a.mu.Lock()
	a.running[c] = struct{}{}
	a.mu.Unlock()
}

func (a *modernAgents) finish(c *modernCall) {
	a.mu.Lock()
	delete(a.running, c)
	a.mu.Unlock()
}

// contextOf returns the context in which the request is made, from which a question leads back to the call.
func (c *modernCall) contextOf(ctx context.Context) context.Context {
	return messages.WithAnswerer(context.WithValue(ctx, callKey{}, c), &c.agents.answerer)
}

// callOf returns the call to which a question of a server belongs. Where the server names none, callOf chooses among this principal's calls there:
// the caller has made sure that the server has no request of another principal. A call whose agent has no question yet goes before one whose agent
// has. Of several such calls the newest is chosen at the principal's own instance, and where one agent on lines has made all of them. Elsewhere
// several agents may have made them: callOf then returns no call, and an error that says why.
func (a *modernAgents) callOf(ctx context.Context, server string) (found *modernCall, why error) {
	if c, ok := ctx.Value(callKey{}).(*modernCall); ok {
		return c, nil
	}
	if owner, _, ok := a.g.all.Of(server).InstanceOf(server); ok {
		server = owner
	}
	isOwn := a.hasInstance(server)
	a.mu.Lock()
	defer a.mu.Unlock()
	var free, waiting []*modernCall
	for c := range a.running {
		if c.to.server != server {
			continue
		}
		c.mu.Lock()
		switch {
		case c.stage == asked || c.handed && len(c.open) > 0:
			waiting = append(waiting, c)
		case c.stage == working:
			free = append(free, c)
		default: // its agent has left
		}
		c.mu.Unlock()
	}
	if len(free) == 0 {
		free = waiting
	}
	for _, c := range free {
		switch {
		case found == nil:
			found = c
		case !isOwn && (c.agent == nil || c.agent != found.agent):
			return nil, errSeveral
		case c.number > found.number:
			found = c
		}
	}
	if found == nil {
		return nil, errNoRequest
	}
	return found, nil
}

var (
	errSeveral = notAsked("the server does not say to which of the requests that it has not answered the question belongs; with one request at a time, or " +
		"with share: principal in its entry and a principal of the agent, it would be asked")
	errNoRequest = notAsked("no agent waits for a request at the server any more")
	// errCannotAsk is the answer of a call that has ended, or whose agent has left.
	errCannotAsk = errors.New("the call cannot bring the answer any more")
)

// newestThatCan returns the number of the newest request at a server whose agent waits for it and has declared an ability; 0 if there is none.
func (a *modernAgents) newestThatCan(server, ability string) (newest int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.running {
		c.mu.Lock()
		if c.to.server == server && c.stage != over && !rawjson.IsNull(rawjson.Member(c.capabilities, ability)) {
			newest = max(newest, c.number)
		}
		c.mu.Unlock()
	}
	return newest
}

// hasInstance reports whether the principal has an instance of a server for itself.
func (a *modernAgents) hasInstance(server string) bool {
	s, err := a.g.all.Of(server).ServerStatus(server)
	return a.principal != "" && err == nil && s.Config != nil && s.Config.Share == messages.SharePrincipal
}

// askAgent puts a question into the answer to the request that waits for the call, and waits for the agent's next request. If it was not known to
// which call the question belongs, and that one ends without an answer, another one asks: its server has not taken the question back.
func (a *modernAgents) askAgent(ctx context.Context, server, ability, method string, params []byte) ([]byte, error) {
	if params == nil {
		params = []byte("{}")
	}
	if a.share.Take(int64(len(params))) != nil {
		return nil, notAsked("too many bytes of questions to this agent are open")
	}
	defer a.share.Give(int64(len(params)))
	params = bytes.Clone(params)
	_, known := ctx.Value(callKey{}).(*modernCall)
	for {
		c, err := a.callOf(ctx, server)
		if err != nil {
			return nil, err
		}
		raw, err := c.askAbout(ctx, known, ability, method, params)
		switch {
		case !errors.Is(err, errCannotAsk):
			return raw, err
		case known || ctx.Err() != nil:
			return nil, &messages.Error{Op: "answer", Class: messages.ClassCanceled, Text: "the question was taken back"}
		}
	}
}

// askAbout asks about a call. If it is known that the question is about it, its end takes the question back; else an agent that has the question
// already brings the answer also afterwards.
func (c *modernCall) askAbout(ctx context.Context, known bool, ability, method string, params []byte) ([]byte, error) {
	c.mu.Lock()
	can := canBeAsked(c.capabilities, ability, params)
	// The questions about a task need no place among the suspended calls: it has one of its own.
	isTask := c.handed || c.wish != nil && c.wish.agent != nil
	c.mu.Unlock()
	if !can {
		return nil, notAsked("the agent has not declared " + ability + ", or its request may not be answered with a question")
	}
	hasPlace := isTask || c.agents.g.suspended.reserve(c)
	answer := make(chan agentAnswer, 1) // capacity 1: who brings the answer does not wait
	c.mu.Lock()
	isOver, id := c.finished || c.stage == over, ""
	if hasPlace {
		if id = c.addQuestion(method, params); id != "" {
			c.answers[id] = answer
		}
	}
	c.mu.Unlock()
	switch {
	case isOver:
		return nil, errCannotAsk
	case !hasPlace:
		return nil, notAsked(fmt.Sprintf("%d calls of this agent, or %d of all agents, wait for answers already, or large ones", maxSuspendedOf, maxSuspended))
	case id == "":
		return nil, notAsked("too many questions about one call are open")
	}
	c.wakeUp()
	if isTask {
		c.noteAsked()
	}
	for done := c.done; ; done = nil {
		select {
		case given := <-answer:
			return given.result, given.err
		case <-done:
			if !known && c.hasAsked(id) {
				continue
			}
		case <-ctx.Done():
		}
		break
	}
	c.mu.Lock()
	_, isOpen := c.answers[id]
	c.dropQuestion(id)
	delete(c.answers, id)
	if stop := c.asking[id]; stop != nil {
		stop()
	}
	c.mu.Unlock()
	if !isOpen { // the answer has come meanwhile
		given := <-answer
		return given.result, given.err
	}
	if isTask {
		c.noteAsked()
	}
	return nil, errCannotAsk
}

// hasAsked reports whether the agent has a question of a call that has ended meanwhile.
func (c *modernCall) hasAsked(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stage == ended && c.answers[id] != nil
}

// canBeAsked reports whether an agent has declared what a question needs: the ability, and that of its kind.
func canBeAsked(capabilities []byte, ability string, params []byte) bool {
	declared := rawjson.Member(capabilities, ability)
	if rawjson.IsNull(declared) {
		return false
	}
	switch ability {
	case "elicitation":
		if mode, _ := rawjson.Text(rawjson.Member(params, "mode")); mode == messages.ElicitURL {
			return !rawjson.IsNull(rawjson.Member(declared, "url"))
		}
	case "sampling":
		if !rawjson.IsNull(rawjson.Member(params, "tools")) {
			return !rawjson.IsNull(rawjson.Member(declared, "tools"))
		}
	}
	return true
}

func (a *modernAgents) answerElicit(ctx context.Context, q messages.ElicitRequest) (res messages.ElicitResult, err error) {
	raw, err := a.askAgent(ctx, q.Server, "elicitation", "elicitation/create", q.Params)
	if err != nil {
		return res, err
	}
	return readElicitation(raw), nil
}

func (a *modernAgents) answerSample(ctx context.Context, q messages.SampleRequest) (json.RawMessage, error) {
	return a.askAgent(ctx, q.Server, "sampling", "sampling/createMessage", q.Params)
}

func (a *modernAgents) answerRoots(ctx context.Context, server string) ([]messages.Root, error) {
	return a.g.rootsFrom(server, func() ([]byte, error) { return a.askAgent(ctx, server, "roots", "roots/list", nil) })
}

// passLog passes a log message on to the request that it belongs to, if that has asked for its level. One that may belong to several
// is lost.
func (a *modernAgents) passLog(ctx context.Context, params json.RawMessage) {
	c, ok := ctx.Value(callKey{}).(*modernCall)
	if !ok {
		return
	}
	if r, _ := c.waitingRequest(); r != nil {
		if least := levelRank(r.LogLevel); least >= 0 && wantsLog(params, least) {
			r.Notify("notifications/message", params)
		}
	}
}
