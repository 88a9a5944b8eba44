package remote

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

// nextCommand is another command for a relay that lives on: a second HandleRequests of the same actor.
type nextCommand struct{ command proto.Message }

// A relay is the actor between one command and its reply, between a watch and its events, or between the servers that
// ask and the peer that answers. It lets nothing pass that is too large, too much, or about a server that the peer
// may not use. It ends with the reply; a longLived one ends with its peer's actor, or when the peerAuthorizer stops
// it.
type relay struct {
	self, peerAuthorizer, manager *actor.PID
	transport                     *peerTransport
	command                       proto.Message // with the peer's identity stamped on it
	sender                        *actor.PID    // the peer's actor, which gets the replies
	identity                      string
	rights                        Rights
	longLived                     bool          // a watch or a handler, which has more than one reply
	limit, cost                   int           // the largest reply, and the cost of the command, in bytes
	callID                        string        // the id that the peer gave its call, empty for none
	buffer                        int           // events that may wait for the peer to read them
	missed                        uint64        // events that were left out since the last one that was sent
	subscription                  *subscription // what a SubscribeResource asks for; nil for other commands
}

// stampIdentity writes the peer's identity into the command's caller and call id. So a peer cannot call, read or list on
// another's behalf, and cannot get the reply to another's call id. A subscription has no caller, because the peers share it.
func (r *relay) stampIdentity() {
	switch m := r.command.(type) {
	case *messages.SubscribeResource:
		m.Caller = ""
	case *messages.UnsubscribeResource:
		m.Caller = ""
	default:
		fields := m.ProtoReflect()
		if caller := fields.Descriptor().Fields().ByName("caller"); caller != nil {
			fields.Set(caller, protoreflect.ValueOfString(callerFor(r.identity, fields.Get(caller).String())))
		}
	}
	switch m := r.command.(type) {
	case *messages.CallTool:
		r.callID = m.GetCallId()
		if r.callID != "" {
			m.CallId = r.identity + " " + r.callID
		}
	case *messages.Watch:
		if r.buffer = int(m.GetBuffer()); r.buffer <= 0 {
			r.buffer = actors.DefaultWatchBuffer
		}
	}
}

// Receive implements actor.Actor. Messages come from the manager, from the peerAuthorizer, and, about the peer's
// actor, from the library.
func (r *relay) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		if r.longLived {
			ctx.Watch(r.sender) // to end with the peer's actor
		}
		r.sendCommand(ctx, r.command)
	case *actor.Stopping:
		if r.longLived {
			ctx.Unwatch(r.sender)
		}
	case *actor.Terminated:
		if m.Who.GetAddress() == r.sender.GetAddress() && m.Who.GetId() == r.sender.GetId() {
			ctx.Stop(ctx.Self()) // the manager's watch of this relay ends with it
		}
	case nextCommand:
		r.sendCommand(ctx, m.command)
	// The peerAuthorizer passes questions on, because the peer's answer comes back to it.
	case *messages.ServerRequest:
		ctx.Request(r.peerAuthorizer, requestForPeer{m})
	case *messages.ServerRequestEnded:
		ctx.Send(r.peerAuthorizer, m)
	case *messages.CallProgress:
		// The peer knows the call by its own id, without the identity in front.
		if r.callID != m.GetCallId() {
			m = &messages.CallProgress{CallId: r.callID, Progress: m.GetProgress(), Total: m.GetTotal(), Message: m.GetMessage()}
		}
		if size := proto.Size(m); size <= r.limit {
			r.transport.sendToPeer(r.sender, m, nil, size) // progress that finds no room is dropped: the next one replaces it
		}
	case *messages.WatchEvent:
		r.forwardEvent(m)
	// The manager's actor has ended.
	case *actor.DeadLetterResponse:
		r.reportSubscription(ctx, true)
		r.sendReply(refusal.ReplyTo(r.command, refusal.ClosedError("remote")))
		ctx.Stop(ctx.Self())
	// Everything else from the manager is a reply. A long-lived relay has the reply to its first command, and events
	// after it.
	case proto.Message:
		done, _ := m.(*messages.Done)
		r.reportSubscription(ctx, done.GetFailure() != nil)
		r.sendReply(m)
		if !r.longLived {
			ctx.Stop(ctx.Self())
		}
	}
}

// sendCommand sends a command to the manager. Headers of the peer's envelope are replaced by one that names the peer,
// for the audit.
func (r *relay) sendCommand(ctx actor.Context, m proto.Message) {
	ctx.Send(r.manager, &actor.MessageEnvelope{Message: m, Sender: ctx.Self(),
		Header: map[string]string{messages.PeerHeader: r.identity + " at " + r.sender.String()}})
}

// reportSubscription tells the peerAuthorizer whether a subscription failed, before the peer is told: the peer's next
// command then finds its place free.
func (r *relay) reportSubscription(ctx actor.Context, failed bool) {
	if m, ok := r.command.(*messages.SubscribeResource); ok {
		ctx.Send(r.peerAuthorizer, subscriptionAnswered{r.identity, resourceKey{m.GetServer(), m.GetUri()}, r.subscription, failed})
	}
}

// forwardEvent sends an event to the peer, if it is about a server that the peer may use. An event that finds no
// room, or is too large, is counted, and a gap before the next event reports how many are missing.
func (r *relay) forwardEvent(m *messages.WatchEvent) {
	// An event without a server is about the manager, or a gap, and passes.
	if m.GetServer() != "" && !r.rights.allowsServer(m.GetServer()) {
		return
	}
	room := r.buffer
	if r.missed > 0 {
		gap := &messages.WatchEvent{Seq: m.GetSeq(), Time: m.GetTime(), Kind: string(messages.EventGap), Missed: r.missed}
		if r.transport.sendToPeerBounded(r.sender, gap, nil, proto.Size(gap), r.buffer) {
			r.missed, room = 0, room+1 // the gap must not take the place of an event
		}
	}
	// While a gap is owed nothing may pass it, or the events would seem complete.
	if size := proto.Size(m); r.missed > 0 || size > r.limit || !r.transport.sendToPeerBounded(r.sender, m, nil, size, room) {
		r.missed++
	}
}

// sendReply sends the reply with the peer's own call id. A reply that is too large becomes a failure; one that finds
// no room is dropped and counted.
func (r *relay) sendReply(m proto.Message) {
	// The manager knows the call by the stamped id; the peer must get its own.
	if call, ok := m.(*messages.CallToolReply); ok && call.GetCallId() != r.callID {
		m = &messages.CallToolReply{CallId: r.callID, Outcome: call.GetOutcome(), Result: call.GetResult(), Failure: call.GetFailure()}
	}
	size := proto.Size(m)
	if size > r.limit {
		m = refusal.ReplyTo(r.command, r.replyTooLargeError(size))
		if call, ok := m.(*messages.CallToolReply); ok {
			call.CallId = r.callID
		}
		size = proto.Size(m)
	}
	if !r.transport.sendToPeer(r.sender, m, nil, size) {
		r.transport.dropped.Add(1)
	}
}

// replyTooLargeError returns the failure that replaces a reply of n bytes. It keeps the truth about a call: the tool
// has run, so the outcome is unknown.
func (r *relay) replyTooLargeError(n int) error {
	err := &messages.Error{Op: "remote", Class: messages.ClassInvalid,
		Text: fmt.Sprintf("the reply has %d bytes and the limit is %d", n, r.limit), Fix: "ask for less, or raise MaxMessage"}
	switch r.command.(type) {
	case *messages.CallTool:
		err.Outcome = messages.OutcomeUnknown
		err.Text += "; the tool has run"
	case *messages.ReadResource, *messages.GetPrompt:
		err.Outcome = messages.OutcomeUnknown
	}
	return err
}
