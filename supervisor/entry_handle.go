package supervisor

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Actors that answer what servers ask. The entry actor owns who they are and what they have not answered; the goroutine of
// a session waits for the answer beside it.

// maxServerAsks bounds the requests of servers that wait for an actor's answer; one more is refused.
const maxServerAsks = 1024

// clerk is an actor that answers the requests of servers.
type clerk struct {
	pid   *actor.PID
	kinds kinds
}

// serverAsk is a request of a server on its way to a clerk. Only the entry actor touches id and clerk.
type serverAsk struct {
	server, method string
	params         json.RawMessage
	deadline       time.Time
	unheard        int              // that the server made before it
	answer         chan clerkAnswer // capacity 1, written once

	id    uint64
	clerk *clerk
}

type clerkAnswer struct {
	result json.RawMessage
	err    error
}

// askOver says that nobody waits for the answer any more.
type askOver struct{ ask *serverAsk }

// ask is the desk's way to the clerks. It runs on the goroutine of a session.
func (e *entry) ask(
	ctx context.Context, server, method string, params json.RawMessage, unheard int,
) (json.RawMessage, error) {
	a := &serverAsk{server: server, method: method, params: params, unheard: unheard, answer: make(chan clerkAnswer, 1)}
	a.deadline, _ = ctx.Deadline()
	e.root.Send(e.self, a)
	select {
	case got := <-a.answer:
		return got.result, got.err
	case <-ctx.Done():
		e.root.Send(e.self, askOver{a})
		return nil, context.Cause(ctx)
	case <-e.over:
		return nil, refusedBy("the manager is closed")
	}
}

// handle takes what is about answering servers. It reports false for another message.
func (e *entry) handle(ctx actor.Context) bool {
	switch c := ctx.Message().(type) {
	case *messages.HandleRequests:
		e.handleRequests(ctx, c)
	case *messages.ServerRequestReply:
		if a := e.asks[c.GetRequestId()]; a != nil {
			e.settle(a, replied(c))
		}
	case *serverAsk:
		e.serverAsks(c)
	case askOver:
		if e.asks[c.ask.id] == c.ask {
			delete(e.asks, c.ask.id)
			e.root.Send(c.ask.clerk.pid, &messages.ServerRequestEnded{RequestId: c.ask.id})
		}
	default:
		return false
	}
	return true
}

func replied(c *messages.ServerRequestReply) clerkAnswer {
	if c.GetRefused() || len(c.GetResult()) == 0 {
		return clerkAnswer{err: refusedBy("the actor that answers refused")}
	}
	return clerkAnswer{result: c.GetResult()}
}

func (e *entry) settle(a *serverAsk, answer clerkAnswer) {
	delete(e.asks, a.id)
	a.answer <- answer
}

// handleRequests gives the sender the kinds that it wants, or none of them.
func (e *entry) handleRequests(ctx actor.Context, c *messages.HandleRequests) {
	to := ctx.Sender()
	if to == nil {
		return // nobody to ask
	}
	want := kinds{sampling: c.GetSampling(), samplingTools: c.GetSampling() && c.GetSamplingTools(),
		elicitation: c.GetElicitation(), elicitationURL: c.GetElicitation() && c.GetElicitationUrl(), roots: c.GetRoots()}
	for key, other := range e.clerks {
		if key != to.String() {
			if text := clash(want, other.kinds); text != "" {
				e.answer(to, &messages.Done{Failure: messages.FailureOf(taken(text + " is answered by another actor"))})
				return
			}
		}
	}
	if text := clash(want, e.m.cfg.desk.own()); text != "" {
		e.answer(to, &messages.Done{Failure: messages.FailureOf(taken(text + " is answered by the program itself"))})
		return
	}
	if want.none() {
		e.dismiss(to)
	} else {
		cl := e.clerks[to.String()]
		if cl == nil {
			cl = &clerk{pid: to}
			e.clerks[to.String()] = cl
			ctx.Watch(to)
		}
		cl.kinds = want
		e.announce()
	}
	e.answer(to, &messages.Done{})
}

func taken(text string) error {
	return &Error{Op: "configure", Class: messages.ClassInvalid, Text: text}
}

// clash names a kind that both answer.
func clash(a, b kinds) string {
	switch {
	case a.sampling && b.sampling:
		return "sampling"
	case a.elicitation && b.elicitation:
		return "elicitation"
	case a.roots && b.roots:
		return "roots"
	}
	return ""
}

// dismiss frees what a clerk had, and refuses what it had not answered.
func (e *entry) dismiss(pid *actor.PID) {
	cl := e.clerks[pid.String()]
	if cl == nil {
		return
	}
	delete(e.clerks, pid.String())
	for _, a := range e.asks {
		if a.clerk == cl {
			e.settle(a, clerkAnswer{err: refusedBy("the actor that answers is gone")})
		}
	}
	e.announce()
}

// announce tells the desk what clerks answer: connections that are opened from now on say so to their servers.
func (e *entry) announce() {
	all := kinds{}
	for _, cl := range e.clerks {
		k := cl.kinds
		all.sampling, all.samplingTools = all.sampling || k.sampling, all.samplingTools || k.samplingTools
		all.elicitation, all.elicitationURL = all.elicitation || k.elicitation, all.elicitationURL || k.elicitationURL
		all.roots = all.roots || k.roots
	}
	e.m.cfg.desk.taken.Store(&all)
}

// serverAsks hands a request on.
func (e *entry) serverAsks(a *serverAsk) {
	for _, cl := range e.clerks {
		k := cl.kinds
		if a.method == "sampling/createMessage" && k.sampling || a.method == "elicitation/create" && k.elicitation ||
			a.method == "roots/list" && k.roots {
			a.clerk = cl
		}
	}
	switch {
	case a.clerk == nil:
		a.answer <- clerkAnswer{err: refusedBy("nobody answers")}
		return
	case len(e.asks) >= maxServerAsks:
		a.answer <- clerkAnswer{err: refusedBy(fmt.Sprintf("%d requests of servers wait already", maxServerAsks))}
		return
	}
	// Drawn at random: whoever knows it may answer, and nobody guesses it.
	var id [8]byte
	for a.id == 0 || e.asks[a.id] != nil {
		_, _ = rand.Read(id[:]) // it never fails
		a.id = binary.BigEndian.Uint64(id[:])
	}
	e.asks[a.id] = a
	m := &messages.ServerRequest{RequestId: a.id, Server: a.server, Method: a.method, Params: a.params, Unheard: int64(a.unheard)}
	if !a.deadline.IsZero() {
		m.RemainingMs = max(time.Until(a.deadline).Milliseconds(), 1)
	}
	e.root.RequestWithCustomSender(a.clerk.pid, m, e.self)
}

// close refuses what waits: the manager ends.
func (e *entry) close() {
	e.m.cfg.desk.counter.Store(nil)
	for _, a := range e.asks {
		e.settle(a, clerkAnswer{err: refusedBy("the manager is closed")})
	}
	close(e.over)
}
