package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Questions are those of a manager's servers that belong to no request.
type Questions struct {
	mu       sync.Mutex
	gateways map[*Gateway]struct{}
	// roots are those that the agents share.
	roots func(server string) []supervisor.Root
}

// ShareRoots sets the roots that a server gets which asks for them outside of a request, or about one whose agent cannot be asked: those
// of the agents that share the server. Many servers ask when their connection begins, and never again. Without it the list is empty.
func (q *Questions) ShareRoots(roots func(server string) []supervisor.Root) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.roots = roots
}

// sharedRoots returns what ShareRoots says of a server.
func (q *Questions) sharedRoots(server string) []supervisor.Root {
	q.mu.Lock()
	roots := q.roots
	q.mu.Unlock()
	if roots == nil {
		return nil
	}
	return roots(server)
}

// PassQuestions makes the servers of a manager know that they may ask, because an agent may answer. A function that cfg has stays:
// it answers the questions that belong to no agent. Without one they are refused, and the roots are those of ShareRoots; but those of an
// instance that one principal has reach an agent of that principal, where a gateway has the result in its Config.
func PassQuestions(cfg *supervisor.Config) *Questions {
	q := &Questions{gateways: map[*Gateway]struct{}{}}
	if cfg.Elicit == nil {
		cfg.Elicit = func(ctx context.Context, r supervisor.ElicitRequest) (res supervisor.ElicitResult, err error) {
			if a, ctx := q.askerFor(ctx, r.Server, "elicitation"); a != nil {
				return a.answerElicit(ctx, r)
			}
			return res, nobodyError(ctx)
		}
	}
	if cfg.Sample == nil {
		cfg.Sample = func(ctx context.Context, r supervisor.SampleRequest) (json.RawMessage, error) {
			if a, ctx := q.askerFor(ctx, r.Server, "sampling"); a != nil {
				return a.answerSample(ctx, r)
			}
			return nil, nobodyError(ctx)
		}
	}
	if cfg.Roots == nil {
		cfg.Roots = func(ctx context.Context, server string) ([]supervisor.Root, error) {
			if a, ctx := q.askerFor(ctx, server, "roots"); a != nil {
				return a.answerRoots(ctx, server)
			}
			return q.sharedRoots(server), nil
		}
	}
	cfg.ElicitURL, cfg.SampleTools = true, true
	return q
}

func (q *Questions) addGateway(g *Gateway) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.gateways[g] = struct{}{}
}

func (q *Questions) removeGateway(g *Gateway) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.gateways, g)
}

// An answerer puts the questions of a server to an agent, and returns what the agent answers: a session of the legacy era, or all agents of a
// principal in the modern one.
type answerer interface {
	answerElicit(ctx context.Context, q messages.ElicitRequest) (messages.ElicitResult, error)
	answerSample(ctx context.Context, q messages.SampleRequest) (json.RawMessage, error)
	answerRoots(ctx context.Context, server string) ([]messages.Root, error)
}

// askerFor chooses the agent for a question of a server that names no request. An instance asks in the name of its principal: of that principal's
// agents, of either era, askerFor takes the one with the newest request at the server among those that have declared the ability. The context
// leads to that request. It returns nil for a server that is no instance, and if no agent of the principal can be asked.
func (q *Questions) askerFor(ctx context.Context, server, ability string) (answerer, context.Context) {
	principal := supervisor.CallerOf(ctx)
	if principal == "" {
		return nil, ctx
	}
	q.mu.Lock()
	gateways := slices.Collect(maps.Keys(q.gateways))
	q.mu.Unlock()
	var found *session
	var newest runningRequest
	var modern *modernAgents
	for _, g := range gateways {
		for _, st := range g.sessionsOf(principal) {
			if st.abilityOf(ability) == nil {
				continue
			}
			st.mu.Lock()
			for _, r := range st.running {
				if r.server == server && r.number > newest.number {
					found, newest = st, r
				}
			}
			st.mu.Unlock()
		}
	}
	for _, g := range gateways {
		if a, ok := g.agents.Load(principal); ok {
			if n := a.(*modernAgents).newestThatCan(server, ability); n > newest.number {
				modern, newest.number = a.(*modernAgents), n
			}
		}
	}
	switch {
	case modern != nil:
		return modern, ctx
	case found != nil:
		return &found.asker, context.WithValue(ctx, requestKey{}, newest.Request)
	}
	return nil, ctx
}

// sessionsOf returns the sessions of a principal.
func (g *Gateway) sessionsOf(principal string) (all []*session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, v := range g.views {
		if key.principal != principal {
			continue
		}
		v.mu.Lock()
		for st := range v.sessions {
			all = append(all, st)
		}
		v.mu.Unlock()
	}
	return all
}

// errNobody is the error of a question of which it is not known whose it is: a guess would show it to a stranger.
var errNobody = notAsked("agents share the server, and it does not say to whose request the question belongs; with share: principal in its entry " +
	"the agent with the newest request there would be asked")

// nobodyError returns the error of a question for which askerFor has found no agent.
func nobodyError(ctx context.Context) error {
	if supervisor.CallerOf(ctx) != "" {
		return notAsked("no agent that can be asked so has a request at the server")
	}
	return errNobody
}

// asker answers the questions of servers about the requests of one session of the legacy era, by asking its agent.
type asker struct {
	g        *Gateway
	st       *session
	answerer messages.Answerer
	// leveled is true once the agent has set a level for log messages.
	leveled atomic.Bool
}

// prepareAnswers makes the answerer. An agent that has not declared an ability is not asked for it.
func (a *asker) prepareAnswers(g *Gateway, st *session) {
	a.g, a.st = g, st
	a.answerer = messages.Answerer{Relays: true, Elicit: a.answerElicit, Sample: a.answerSample, Roots: a.answerRoots, Log: a.passLog}
}

// abilityOf returns what the agent has declared of an ability, nil if nothing.
func (a *asker) abilityOf(ability string) []byte {
	value := rawjson.Member(a.st.agent.Capabilities, ability)
	if rawjson.IsNull(value) {
		return nil
	}
	return value
}

// askAgent sends a server's question to the agent, on the stream of the request that it belongs to.
func (a *asker) askAgent(ctx context.Context, server, ability, method string, params []byte) ([]byte, error) {
	if a.abilityOf(ability) == nil {
		return nil, notAsked("the agent has not declared " + ability)
	}
	r := a.st.requestOf(ctx, server)
	if r == nil {
		return nil, errNobody
	}
	result, e := r.Ask(ctx, method, params)
	if e != nil {
		return nil, &messages.Error{Op: "answer", Class: messages.ClassRejected, Text: "the agent gave no answer: " + messages.Line(e.Error(), 200), Reply: e.Raw}
	}
	if !rawjson.IsObject(result) {
		return nil, &messages.Error{Op: "answer", Class: messages.ClassProtocol, Text: "the agent's answer is no object"}
	}
	return result, nil
}

// notAsked is the error of a question that no agent could be asked. The server gets the reason, which the gateway's own words give: it often
// passes it on to the model, and nothing else would tell a person what to change.
func notAsked(why string) error {
	reply := rawjson.AppendText([]byte(`{"code":-32603,"message":`), "nobody could be asked: "+why)
	return &messages.Error{Op: "answer", Class: messages.ClassDenied, Text: why, Err: messages.ErrNotShown, Reply: append(reply, '}')}
}

func (a *asker) answerElicit(ctx context.Context, q messages.ElicitRequest) (res messages.ElicitResult, err error) {
	if q.Mode == messages.ElicitURL && rawjson.IsNull(rawjson.Member(a.abilityOf("elicitation"), "url")) {
		return res, notAsked("the agent cannot send a person to an address")
	}
	raw, err := a.askAgent(ctx, q.Server, "elicitation", "elicitation/create", q.Params)
	if err != nil {
		return res, err
	}
	return readElicitation(raw), nil
}

// readElicitation reads an agent's answer. The server gets the agent's own bytes; of them only what is compared with the form is read.
func readElicitation(raw []byte) (res messages.ElicitResult) {
	res.Action, _ = rawjson.Text(rawjson.Member(raw, "action"))
	res.Content, res.Raw = rawjson.Member(raw, "content"), raw
	return res
}

func (a *asker) answerSample(ctx context.Context, q messages.SampleRequest) (json.RawMessage, error) {
	return a.askAgent(ctx, q.Server, "sampling", "sampling/createMessage", q.Params)
}

func (a *asker) answerRoots(ctx context.Context, server string) ([]messages.Root, error) {
	return a.g.rootsFrom(server, func() ([]byte, error) { return a.askAgent(ctx, server, "roots", "roots/list", nil) })
}

// rootsFrom returns the roots that a server gets which asks while a request of an agent runs: the agent's own, which ask gets, and then those
// that agents share. A server of the legacy era keeps the list for all of them, and asks for it when it is told of changed roots, whatever
// runs then. If the agent cannot be asked, they are those that are shared, if there are any. One of the modern era asks about a request alone.
func (g *Gateway) rootsFrom(server string, ask func() ([]byte, error)) (roots []messages.Root, err error) {
	raw, err := ask()
	if err == nil {
		roots, err = readRoots(raw)
	}
	alone := err == nil && g.all.Of(server).EraOf(server) == messages.EraModern
	if alone || err != nil && !errors.Is(err, messages.ErrNotShown) {
		return roots, err
	}
	for _, q := range g.cfg.Questions {
		for _, shared := range q.sharedRoots(server) {
			if !slices.ContainsFunc(roots, func(r messages.Root) bool { return r.URI == shared.URI }) {
				roots = append(roots, shared)
			}
		}
	}
	if len(roots) > 0 {
		return roots, nil
	}
	return roots, err
}

// readRoots reads an agent's list of roots.
func readRoots(raw []byte) ([]messages.Root, error) {
	list := rawjson.Member(raw, "roots")
	if !rawjson.IsArray(list) {
		return nil, errors.New("the agent's answer is no list of roots")
	}
	var roots []messages.Root
	for a := rawjson.ArrayAt(list, 0, 0); a.Next(); {
		root := messages.Root{Raw: a.Skip()}
		root.URI, _ = rawjson.Text(rawjson.Member(root.Raw, "uri"))
		root.Name, _ = rawjson.Text(rawjson.Member(root.Raw, "name"))
		roots = append(roots, root)
	}
	return roots, nil
}

// passLog passes a log message on, if the agent wants its level.
func (a *asker) passLog(ctx context.Context, params json.RawMessage) {
	if r := a.st.requestOf(ctx, ""); r != nil && wantsLog(params, int(a.st.level.Load())) {
		r.Notify("notifications/message", params)
	}
}

// wantsLog reports whether a log message is at least as severe as a level. One of an unknown level is passed on.
func wantsLog(params []byte, least int) bool {
	level, _ := rawjson.Text(rawjson.Member(params, "level"))
	rank := levelRank(level)
	return rank < 0 || rank >= least
}
