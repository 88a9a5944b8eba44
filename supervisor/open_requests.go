package supervisor

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// This file holds the end of the entry actor. Every call and read that it has begun is replied to before its end: the last reply of a
// goroutine travels through the mailbox, which a Stop of the actor library overtakes.

// maxEntryEnd bounds how long an entry actor waits for its requests when the last server is gone. They have ended by then, unless a
// function of the program (an interceptor, Config.Allow) holds one up.
const maxEntryEnd = 2 * time.Second

// openRequest is a call or a read that runs in a goroutine. refuse makes its reply of an error.
type openRequest struct {
	to     requester
	refuse func(error) proto.Message
}

// endDue says to an entry actor that the manager is closed: it ends when its requests have ended. last says that the time for that is
// over.
type endDue struct{ last bool }

// addRequest lists a request that a goroutine begins.
func (e *entryActor) addRequest(to requester, refuse func(error) proto.Message) *openRequest {
	r := &openRequest{to, refuse}
	e.inFlight++
	e.open[r] = true
	return r
}

// endRequest takes a request off the list, and ends the actor after the last one if the manager is closed. It reports false for a
// request of an actor before this one, which has replied to it at its end.
func (e *entryActor) endRequest(r *openRequest) bool {
	if !e.open[r] {
		return false
	}
	e.inFlight--
	delete(e.open, r)
	if e.ending && len(e.open) == 0 {
		// What is in the mailbox by now is answered before.
		e.root.Send(e.self, endDue{})
	}
	return true
}

// handleEndDue stops the actor, at once if nothing is open, else when the last request has ended or the time for it is over.
func (e *entryActor) handleEndDue(ctx actor.Context, m endDue) {
	if len(e.open) == 0 || m.last {
		ctx.Stop(ctx.Self())
		return
	}
	if !e.ending {
		root, self := e.root, e.self
		e.endTimer = time.AfterFunc(maxEntryEnd, func() { root.Send(self, endDue{last: true}) })
	}
	e.ending = true
}

// refuseOpen replies to every request that still runs when the actor ends. What such a request has done is not known.
func (e *entryActor) refuseOpen() {
	if e.endTimer != nil {
		e.endTimer.Stop()
	}
	for r := range e.open {
		reply := r.refuse(&messages.Error{Op: "call", Outcome: messages.OutcomeUnknown, Class: messages.ClassCanceled,
			Text: "the manager was closed before the request had ended", Err: messages.ErrClosed})
		e.sendReply(r.to, reply)
		if call, ok := reply.(*messages.CallToolReply); ok && e.calls[call.GetCallId()] != nil {
			for _, to := range e.calls[call.GetCallId()].waiters {
				e.sendReply(to, reply)
			}
			delete(e.calls, call.GetCallId())
		}
		delete(e.open, r)
	}
}

// closeOnPoison is the middleware that makes a PoisonPill of the entry actor close the whole manager. The actor goes on answering until
// the last server is gone, so that the calls which end meanwhile are replied to; the manager's close ends it then.
func closeOnPoison(closeManager func()) actor.ReceiverMiddleware {
	return func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(ctx actor.ReceiverContext, envelope *actor.MessageEnvelope) {
			if _, poisoned := envelope.Message.(*actor.PoisonPill); poisoned {
				closeManager()
				return
			}
			next(ctx, envelope)
		}
	}
}

// stopEntry ends the entry actor when its requests are answered, and returns when it has ended. An actor that a function of the program
// keeps from ending (Config.ActorOptions) is stopped and left.
func (m *Manager) stopEntry() {
	select {
	case <-m.entryEnded: // somebody has stopped it
		return
	default:
	}
	m.system.Root.Send(m.entry, endDue{})
	bound := time.NewTimer(2 * maxEntryEnd)
	defer bound.Stop()
	select {
	case <-m.entryEnded:
	case <-bound.C:
		m.system.Root.Stop(m.entry)
	}
}
