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
	"github.com/mcpvisor/mcpvisor/supervisor/internal/requests"
)

// This file lets other actors answer the requests of servers. The entry actor owns the set of handlers and their unanswered
// requests; the goroutine of a session waits for the answer on a channel.
//
//	session goroutine ── pendingRequest ──▶ entry actor ── ServerRequest ──▶ handler
//	        ◀──────── answer channel ────────   ◀──── ServerRequestReply ────

// maxPendingRequests bounds the requests of servers that wait for a handler's answer; one more is refused at once.
const maxPendingRequests = 1024

// handlerActor is an actor that has announced, with HandleRequests, which kinds of servers' requests it answers.
type handlerActor struct {
	pid   *actor.PID
	kinds requests.Kinds
}

// pendingRequest is a request of a server on its way to a handler. The session's goroutine writes the first fields and reads
// answer; id and handler belong to the entry actor.
type pendingRequest struct {
	server, method string
	caller         string // on whose behalf the server asks, if that is known
	params         json.RawMessage
	deadline       time.Time
	unheard        int                // how many requests of the server were refused for their rate before this one
	answer         chan handlerAnswer // capacity 1, written once: the actor never waits for the reader

	id      uint64
	handler *handlerActor
}

// handlerAnswer is a handler's result, as JSON, or the reason why there is none.
type handlerAnswer struct {
	result json.RawMessage
	err    error
}

// requestAbandoned says that the session's goroutine has stopped waiting: the server took its request back, or the call ended.
type requestAbandoned struct{ request *pendingRequest }

// askHandler passes a server's request to the handler of its kind and waits for the answer. It runs on a goroutine of a session.
func (e *entryActor) askHandler(
	ctx context.Context, server, method string, params json.RawMessage, unheard int,
) (json.RawMessage, error) {
	a := &pendingRequest{server: server, method: method, caller: messages.CallerOf(ctx), params: params, unheard: unheard, answer: make(chan handlerAnswer, 1)}
	// The request travels through the mailbox, because only the actor knows the handlers.
	a.deadline, _ = ctx.Deadline()
	e.root.Send(e.self, a)
	select {
	case got := <-a.answer:
		return got.result, got.err
	case <-ctx.Done():
		// ServerRequestEnded lets the handler withdraw the question from its person.
		e.root.Send(e.self, requestAbandoned{a})
		return nil, context.Cause(ctx)
	case <-e.stopped:
		return nil, requests.RefusedError("the manager is closed")
	}
}

// receiveHandling handles the messages about servers' requests. It reports false for any other message.
func (e *entryActor) receiveHandling(ctx actor.Context) bool {
	switch c := ctx.Message().(type) {
	case *messages.HandleRequests:
		e.handleRequests(ctx, c)
	case *messages.ServerRequestReply:
		// A reply to an id that is not pending is late, or a second one: it is dropped.
		if a := e.pending[c.GetRequestId()]; a != nil {
			e.completeRequest(a, handlerAnswerOf(c))
		}
	// Sent by askHandler, from the goroutine of a session.
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

// handlerAnswerOf translates a handler's reply. An empty result counts as a refusal.
func handlerAnswerOf(c *messages.ServerRequestReply) handlerAnswer {
	if c.GetRefused() || len(c.GetResult()) == 0 {
		return handlerAnswer{err: requests.RefusedError("the actor that answers refused")}
	}
	return handlerAnswer{result: c.GetResult()}
}

// completeRequest hands over the answer. The channel has room, because each request is completed once: it leaves pending here.
func (e *entryActor) completeRequest(a *pendingRequest, answer handlerAnswer) {
	delete(e.pending, a.id)
	a.answer <- answer
}

// handleRequests gives the sender the kinds that it asks for, or none of them if another handler or the program has one already:
// each kind has one answerer, so that a person is asked once. Asking for no kind dismisses the sender. Kinds that it had before are
// replaced.
func (e *entryActor) handleRequests(ctx actor.Context, c *messages.HandleRequests) {
	if ctx.Sender() == nil {
		return // there is no actor to send requests to
	}
	to := uncached(ctx.Sender())
	// An extension without its kind means nothing.
	want := requests.Kinds{Sampling: c.GetSampling(), SamplingTools: c.GetSampling() && c.GetSamplingTools(),
		Elicitation: c.GetElicitation(), ElicitationURL: c.GetElicitation() && c.GetElicitationUrl(), Roots: c.GetRoots()}
	// The sender's own kinds do not count: it may change its mind.
	for key, other := range e.handlers {
		if key != to.String() {
			if text := sharedKind(want, other.kinds); text != "" {
				e.sendReply(requesterOf(ctx), &messages.Done{Failure: messages.FailureOf(kindTakenError(text + " is answered by another actor"))})
				return
			}
		}
	}
	if text := sharedKind(want, e.requests.ProgramKinds()); text != "" {
		e.sendReply(requesterOf(ctx), &messages.Done{Failure: messages.FailureOf(kindTakenError(text + " is answered by the program itself"))})
		return
	}
	if want.IsEmpty() {
		e.dismissHandler(to)
	} else {
		// A new handler is watched, so that its requests are refused when it ends.
		cl := e.handlers[to.String()]
		if cl == nil {
			cl = &handlerActor{pid: to}
			e.handlers[to.String()] = cl
			// It comes after the reply: see uncached.
			defer ctx.Watch(to)
		}
		cl.kinds = want
		e.publishKinds()
	}
	e.sendReply(requesterOf(ctx), &messages.Done{})
}

// kindTakenError is the refusal of HandleRequests.
func kindTakenError(text string) error {
	return &messages.Error{Op: "configure", Class: messages.ClassInvalid, Text: text}
}

// sharedKind names the first kind that both sets have; empty if they have none in common.
func sharedKind(a, b requests.Kinds) string {
	switch {
	case a.Sampling && b.Sampling:
		return "sampling"
	case a.Elicitation && b.Elicitation:
		return "elicitation"
	case a.Roots && b.Roots:
		return "roots"
	}
	return ""
}

// dismissHandler removes a handler that has ended or wants no kind any more, and refuses the requests that it had not answered.
func (e *entryActor) dismissHandler(pid *actor.PID) {
	cl := e.handlers[pid.String()]
	if cl == nil {
		return
	}
	delete(e.handlers, pid.String())
	// The servers get an answer at once and need not wait for their own timeouts.
	for _, a := range e.pending {
		if a.handler == cl {
			e.completeRequest(a, handlerAnswer{err: requests.RefusedError("the actor that answers is gone")})
		}
	}
	e.publishKinds()
}

// publishKinds publishes what handlers answer. Connections that are opened from now on announce it to their servers; the protocol
// has no way to tell those that are open.
func (e *entryActor) publishKinds() {
	// The kinds of all handlers together are what a new connection announces.
	all := requests.Kinds{}
	for _, cl := range e.handlers {
		k := cl.kinds
		all.Sampling, all.SamplingTools = all.Sampling || k.Sampling, all.SamplingTools || k.SamplingTools
		all.Elicitation, all.ElicitationURL = all.Elicitation || k.Elicitation, all.ElicitationURL || k.ElicitationURL
		all.Roots = all.Roots || k.Roots
	}
	e.requests.SetActorKinds(all)
}

// routeRequest sends a request to its handler under a new id, or refuses it.
func (e *entryActor) routeRequest(a *pendingRequest) {
	for _, cl := range e.handlers {
		k := cl.kinds
		if a.method == "sampling/createMessage" && k.Sampling || a.method == "elicitation/create" && k.Elicitation ||
			a.method == "roots/list" && k.Roots {
			a.handler = cl
		}
	}
	switch {
	case a.handler == nil:
		a.answer <- handlerAnswer{err: requests.RefusedError("nobody answers")}
		return
	case len(e.pending) >= maxPendingRequests:
		a.answer <- handlerAnswer{err: requests.RefusedError(fmt.Sprintf("%d requests of servers wait already", maxPendingRequests))}
		return
	}
	// The id is drawn at random, because any actor that knows it could send the answer: it must not be guessable.
	var id [8]byte
	for a.id == 0 || e.pending[a.id] != nil {
		_, _ = rand.Read(id[:]) // it never fails
		a.id = binary.BigEndian.Uint64(id[:])
	}
	e.pending[a.id] = a
	m := &messages.ServerRequest{RequestId: a.id, Server: a.server, Method: a.method, Caller: a.caller, Params: a.params,
		Unheard: int64(a.unheard)}
	if !a.deadline.IsZero() {
		// The handler learns how long an answer is of use; 0 would mean no bound, so the least is 1.
		m.RemainingMs = max(time.Until(a.deadline).Milliseconds(), 1)
	}
	// The handler replies to this actor, with the id.
	e.root.RequestWithCustomSender(a.handler.pid, m, e.self)
}

// refusePending refuses every request that waits, because the manager ends, and releases the goroutines that still send.
func (e *entryActor) refusePending() {
	// New requests are refused by the [requests.Handler] itself from here on.
	e.requests.SetActor(nil)
	for _, a := range e.pending {
		e.completeRequest(a, handlerAnswer{err: requests.RefusedError("the manager is closed")})
	}
	close(e.stopped)
}
