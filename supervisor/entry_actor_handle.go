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

// maxPendingRequests bounds the requests of servers that wait for an actor's answer; one more is refused.
const maxPendingRequests = 1024

// handlerActor is an actor that answers the requests of servers.
type handlerActor struct {
	pid   *actor.PID
	kinds requestKinds
}

// pendingRequest is a request of a server on its way to a clerk. Only the entry actor touches id and clerk.
type pendingRequest struct {
	server, method string
	params         json.RawMessage
	deadline       time.Time
	unheard        int                // that the server made before it
	answer         chan handlerAnswer // capacity 1, written once

	id      uint64
	handler *handlerActor
}

type handlerAnswer struct {
	result json.RawMessage
	err    error
}

// requestAbandoned says that nobody waits for the answer any more.
type requestAbandoned struct{ request *pendingRequest }

// askHandler is the desk's way to the clerks. It runs on the goroutine of a session.
func (e *entryActor) askHandler(
	ctx context.Context, server, method string, params json.RawMessage, unheard int,
) (json.RawMessage, error) {
	a := &pendingRequest{server: server, method: method, params: params, unheard: unheard, answer: make(chan handlerAnswer, 1)}
	a.deadline, _ = ctx.Deadline()
	e.root.Send(e.self, a)
	select {
	case got := <-a.answer:
		return got.result, got.err
	case <-ctx.Done():
		e.root.Send(e.self, requestAbandoned{a})
		return nil, context.Cause(ctx)
	case <-e.stopped:
		return nil, refusedError("the manager is closed")
	}
}

// receiveHandling takes what is about answering servers. It reports false for another message.
func (e *entryActor) receiveHandling(ctx actor.Context) bool {
	switch c := ctx.Message().(type) {
	case *messages.HandleRequests:
		e.handleRequests(ctx, c)
	case *messages.ServerRequestReply:
		if a := e.pending[c.GetRequestId()]; a != nil {
			e.completeRequest(a, handlerAnswerOf(c))
		}
	case *pendingRequest:
		e.routeRequest(c)
	case requestAbandoned:
		if e.pending[c.request.id] == c.request {
			delete(e.pending, c.request.id)
			e.root.Send(c.request.handler.pid, &messages.ServerRequestEnded{RequestId: c.request.id})
		}
	default:
		return false
	}
	return true
}

func handlerAnswerOf(c *messages.ServerRequestReply) handlerAnswer {
	if c.GetRefused() || len(c.GetResult()) == 0 {
		return handlerAnswer{err: refusedError("the actor that answers refused")}
	}
	return handlerAnswer{result: c.GetResult()}
}

func (e *entryActor) completeRequest(a *pendingRequest, answer handlerAnswer) {
	delete(e.pending, a.id)
	a.answer <- answer
}

// handleRequests gives the sender the kinds that it wants, or none of them.
func (e *entryActor) handleRequests(ctx actor.Context, c *messages.HandleRequests) {
	to := ctx.Sender()
	if to == nil {
		return // nobody to ask
	}
	want := requestKinds{sampling: c.GetSampling(), samplingTools: c.GetSampling() && c.GetSamplingTools(),
		elicitation: c.GetElicitation(), elicitationURL: c.GetElicitation() && c.GetElicitationUrl(), roots: c.GetRoots()}
	for key, other := range e.handlers {
		if key != to.String() {
			if text := sharedKind(want, other.kinds); text != "" {
				e.sendReply(to, &messages.Done{Failure: messages.FailureOf(kindTakenError(text + " is answered by another actor"))})
				return
			}
		}
	}
	if text := sharedKind(want, e.m.cfg.requestHandler.programKinds()); text != "" {
		e.sendReply(to, &messages.Done{Failure: messages.FailureOf(kindTakenError(text + " is answered by the program itself"))})
		return
	}
	if want.isEmpty() {
		e.dismissHandler(to)
	} else {
		cl := e.handlers[to.String()]
		if cl == nil {
			cl = &handlerActor{pid: to}
			e.handlers[to.String()] = cl
			ctx.Watch(to)
		}
		cl.kinds = want
		e.publishKinds()
	}
	e.sendReply(to, &messages.Done{})
}

func kindTakenError(text string) error {
	return &Error{Op: "configure", Class: messages.ClassInvalid, Text: text}
}

// sharedKind names a kind that both answer.
func sharedKind(a, b requestKinds) string {
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

// dismissHandler frees what a clerk had, and refuses what it had not answered.
func (e *entryActor) dismissHandler(pid *actor.PID) {
	cl := e.handlers[pid.String()]
	if cl == nil {
		return
	}
	delete(e.handlers, pid.String())
	for _, a := range e.pending {
		if a.handler == cl {
			e.completeRequest(a, handlerAnswer{err: refusedError("the actor that answers is gone")})
		}
	}
	e.publishKinds()
}

// publishKinds tells the desk what clerks answer: connections that are opened from now on say so to their servers.
func (e *entryActor) publishKinds() {
	all := requestKinds{}
	for _, cl := range e.handlers {
		k := cl.kinds
		all.sampling, all.samplingTools = all.sampling || k.sampling, all.samplingTools || k.samplingTools
		all.elicitation, all.elicitationURL = all.elicitation || k.elicitation, all.elicitationURL || k.elicitationURL
		all.roots = all.roots || k.roots
	}
	e.m.cfg.requestHandler.actorKinds.Store(&all)
}

// routeRequest hands a request on.
func (e *entryActor) routeRequest(a *pendingRequest) {
	for _, cl := range e.handlers {
		k := cl.kinds
		if a.method == "sampling/createMessage" && k.sampling || a.method == "elicitation/create" && k.elicitation ||
			a.method == "roots/list" && k.roots {
			a.handler = cl
		}
	}
	switch {
	case a.handler == nil:
		a.answer <- handlerAnswer{err: refusedError("nobody answers")}
		return
	case len(e.pending) >= maxPendingRequests:
		a.answer <- handlerAnswer{err: refusedError(fmt.Sprintf("%d requests of servers wait already", maxPendingRequests))}
		return
	}
	// Drawn at random: whoever knows it may answer, and nobody guesses it.
	var id [8]byte
	for a.id == 0 || e.pending[a.id] != nil {
		_, _ = rand.Read(id[:]) // it never fails
		a.id = binary.BigEndian.Uint64(id[:])
	}
	e.pending[a.id] = a
	m := &messages.ServerRequest{RequestId: a.id, Server: a.server, Method: a.method, Params: a.params, Unheard: int64(a.unheard)}
	if !a.deadline.IsZero() {
		m.RemainingMs = max(time.Until(a.deadline).Milliseconds(), 1)
	}
	e.root.RequestWithCustomSender(a.handler.pid, m, e.self)
}

// refusePending refuses what waits: the manager ends.
func (e *entryActor) refusePending() {
	e.m.cfg.requestHandler.actorHandler.Store(nil)
	for _, a := range e.pending {
		e.completeRequest(a, handlerAnswer{err: refusedError("the manager is closed")})
	}
	close(e.stopped)
}
