package gateway

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/auth/oauth"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

const (
	// signInTime is how long the address of a sign-in is good.
	signInTime = 10 * time.Minute
	// addressTime is how long a call waits for that address: the authorization server is asked first.
	addressTime = 15 * time.Second
	// signInWait is how long the next request of an agent of the modern era waits for its person to be done.
	signInWait = time.Minute
	// codeURLRequired is the error of 2025-11-25 for a request whose person must visit an address first.
	codeURLRequired = -32042
	// maxTold bounds the sessions that are told when a sign-in is done.
	maxTold = 64
)

// signIns are the sign-ins that agents were given the address of, one a server. mu guards the map and the sessions to be told.
type signIns struct {
	mu      sync.Mutex
	running map[string]*signIn
}

// signIn is one that runs. Only the principal that caused it gets its address.
type signIn struct {
	id, principal string
	// url is set when ready is closed; empty if there is no address to open. done is closed at the end.
	url         string
	ready, done chan struct{}
	sessions    map[*serve.Session]struct{}
}

// beginSignIn returns the sign-in of a server for a principal; nil if another principal has one.
func (g *Gateway) beginSignIn(server, principal string) *signIn {
	g.signIns.mu.Lock()
	defer g.signIns.mu.Unlock()
	if s := g.signIns.running[server]; s != nil {
		if s.principal != principal {
			return nil
		}
		return s
	}
	s := &signIn{id: rand.Text(), principal: principal, ready: make(chan struct{}), done: make(chan struct{}), sessions: map[*serve.Session]struct{}{}}
	if g.signIns.running == nil {
		g.signIns.running = map[string]*signIn{}
	}
	g.signIns.running[server] = s
	g.work.Go(func() { g.runSignIn(server, s) })
	return s
}

// runSignIn performs the sign-in: its own listener on the loopback takes the answer of the browser, and the manager connects the server.
func (g *Gateway) runSignIn(server string, s *signIn) {
	shown := sync.OnceFunc(func() { close(s.ready) })
	defer func() {
		_ = recover() // a defect costs this sign-in only
		g.signIns.mu.Lock()
		delete(g.signIns.running, server)
		sessions := s.sessions
		s.sessions = nil
		g.signIns.mu.Unlock()
		shown()
		close(s.done)
		// 2025-11-25: "Servers MAY send a notifications/elicitation/complete notification when an out-of-band interaction started by URL
		// mode elicitation is completed."
		for agent := range sessions {
			agent.Notify("signed in "+s.id, "notifications/elicitation/complete", append(rawjson.AppendText([]byte(`{"elicitationId":`), s.id), '}'))
		}
	}()
	ctx := supervisor.WithCaller(g.lifetime, s.principal)
	// How it ended shows in the state of the server: the next call succeeds, or says why not.
	_ = g.all.Of(server).Login(ctx, server, supervisor.LoginOptions{Prompt: oauth.Prompt{Timeout: signInTime, Show: func(q oauth.SignInRequest) {
		s.url = q.URL
		shown()
	}}})
}

// maySignIn reports whether a principal may sign a server in: its credentials are those of all who use it.
func (g *Gateway) maySignIn(principal string) bool {
	if g.cfg.MaySignIn != nil {
		return g.cfg.MaySignIn(principal)
	}
	return principal == ""
}

// answerFailure answers a request that has no result: with the address of the sign-in, if that is what the server needs and the agent
// can show one, else with what fail makes of the error. Of the agent's request it needs what outlives that.
func (g *Gateway) answerFailure(ctx context.Context, q *outgoing, err error) ([]byte, *serve.Error) {
	r, e := q.r, errorOf(err)
	never := e.Outcome == messages.OutcomeNotSent || e.Outcome == messages.OutcomeRejected
	if e.Class != messages.ClassUnauthorized || !never || e.Reply != nil || r.Modern() && !asksAgents(r.Method) ||
		!canBeAsked(q.capabilities, "elicitation", []byte(`{"mode":"url"}`)) || !g.maySignIn(r.Session.Principal.Name) {
		return q.fail(err)
	}
	s := g.beginSignIn(q.to.server, r.Session.Principal.Name)
	if s == nil || !waitClosed(ctx, s.ready, addressTime) || s.url == "" {
		return q.fail(err)
	}
	params := rawjson.AppendText([]byte(`{"mode":"url","message":`), "The server "+messages.Line(q.to.server, 100)+" needs a sign-in")
	params = rawjson.AppendText(append(params, `,"url":`...), s.url)
	if r.Modern() {
		b := append([]byte(`{"resultType":"input_required","inputRequests":{"sign_in":{"method":"elicitation/create","params":`), params...)
		b = append(b, `}}},"requestState":`...)
		return append(rawjson.AppendText(b, g.sealSignIn(q)), '}'), nil
	}
	g.signIns.mu.Lock()
	if s.sessions != nil && len(s.sessions) < maxTold {
		s.sessions[r.Session] = struct{}{}
	}
	g.signIns.mu.Unlock()
	params = append(rawjson.AppendText(append(params, `,"elicitationId":`...), s.id), '}')
	data := append(append([]byte(`{"elicitations":[`), params...), `],"mcpvisor/outcome":`...)
	data = append(rawjson.AppendText(data, string(e.Outcome)), '}')
	return nil, &serve.Error{Code: codeURLRequired, Message: textFor(e), Data: data}
}

// waitClosed waits for a channel to be closed, and reports whether it was.
func waitClosed(ctx context.Context, ch <-chan struct{}, most time.Duration) bool {
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-ch:
		return true
	case <-t.C:
	case <-ctx.Done():
	}
	return false
}

// sealSignIn returns the state with which an agent comes back after a sign-in.
func (g *Gateway) sealSignIn(q *outgoing) string {
	plain := g.beginState(signInTime)
	return base64.RawURLEncoding.EncodeToString(g.states.Seal(nil, nil, plain, signInOwner(q)))
}

// signInOwner returns what that state is bound to.
func signInOwner(q *outgoing) []byte {
	return append(handleOwner(q.r, q.to, q.arguments), "sign-in"...)
}

// afterSignIn reports whether a request comes back after a sign-in, and waits for its end. The request was not run before: it is made now.
// If the person has not signed in, err says so.
func (g *Gateway) afterSignIn(ctx context.Context, q *outgoing) (back bool, err error) {
	if _, ok := g.unseal(q.state, signInOwner(q)); !ok {
		return false, nil
	}
	action, _ := rawjson.Text(rawjson.Member(rawjson.Member(q.responses, "sign_in"), "action"))
	if action != messages.ElicitAccept {
		return true, &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassUnauthorized, Server: q.to.server,
			Text: "the server needs a sign-in, and nobody has signed in"}
	}
	g.signIns.mu.Lock()
	s := g.signIns.running[q.to.server]
	g.signIns.mu.Unlock()
	if s != nil && s.principal == q.r.Session.Principal.Name {
		waitClosed(ctx, s.done, signInWait)
	}
	return true, nil
}
