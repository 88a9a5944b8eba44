package remote

import (
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

// A peerCommand is a command of a peer, with the identity of its stream. The stream sends it to the peerAuthorizer.
type peerCommand struct {
	identity string
	sender   *actor.PID // an actor at the stream's address; nil if the peer wants no reply
	message  proto.Message
	size     int             // cost in bytes, with fieldCost for each field
	refused  error           // the transport's own reason to refuse it; nil if there is none
	received chan<- struct{} // gets one value when the peerAuthorizer has handled the command
}

// longLivedKey returns the key of the sender's watch and of its handler: one actor of a peer has at most one of each.
func (a *peerCommand) longLivedKey() string {
	return a.identity + " " + a.sender.GetAddress() + " " + a.sender.GetId()
}

// addressLost reports that an address does not belong to an identity any more.
type addressLost struct{ identity, address string }

// requestForPeer is a question of a server, which a relay passes on for the peer that answers it.
type requestForPeer struct{ request *messages.ServerRequest }

// peerAuthorizer is the one actor that peers can name. It refuses the commands that a peer may not send, and gives
// the others to the manager through a relay each, which checks the reply. Its fields belong to the actor: only
// Receive touches them.
type peerAuthorizer struct {
	cfg       Config
	transport *peerTransport
	manager   *supervisor.Manager
	ended     bool // the manager has ended: every command is refused

	relays          map[string]*relay // all that live, by the id of their actor
	watches         map[string]*relay // those of watches, by the identity, address and actor of the peer
	handlers        map[string]*relay // those that answer the questions of servers, by the same
	pendingRequests map[uint64]*relay // questions that wait for a peer's answer, by their id
	usages          map[string]*usage // by identity; without an entry nothing is in use
	totalUsage      usage
	// subscriptions are those of each identity, by resource. The manager has one subscription for all of them.
	subscriptions map[resourceKey]map[string]*subscription
}

// usage counts the open work of an identity, or of all.
type usage struct{ commands, bytes, longLived, subscriptions int }

// newGateway returns the actor's state for a manager.
func newGateway(cfg Config, w *peerTransport, m *supervisor.Manager) *peerAuthorizer {
	return &peerAuthorizer{cfg: cfg, transport: w, manager: m, relays: map[string]*relay{}, watches: map[string]*relay{},
		handlers: map[string]*relay{}, pendingRequests: map[uint64]*relay{}, usages: map[string]*usage{},
		subscriptions: map[resourceKey]map[string]*subscription{}}
}

// Receive implements actor.Actor.
func (g *peerAuthorizer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Watch(g.manager.PID())
	case *actor.Stopping:
		g.transport.endWatched()
	case peerCommand:
		defer func() { m.received <- struct{}{} }() // the channel has room for all commands of the frame
		g.handleCommand(ctx, m)
	// A relay is a child of this actor, so its end is reported here.
	case *actor.Terminated:
		if m.Who.Equal(g.manager.PID()) {
			g.handleEnd(ctx)
			return
		}
		g.removeRelay(m.Who)
	case addressLost:
		// Watches and handlers end with their address; single commands end with their reply, which is lost.
		for _, r := range g.relays {
			if r.longLived && r.identity == m.identity && r.sender.GetAddress() == m.address {
				ctx.Stop(r.self)
			}
		}
		// A program of the identity at another address may still want its resources.
		if !g.transport.registry.hasAddress(m.identity) {
			for _, at := range g.removeSubscriptions(m.identity) {
				g.endSubscription(ctx, at)
			}
		}
	case subscriptionAnswered:
		if g.noteAnswer(m) {
			g.endSubscription(ctx, m.resource)
		}
	case requestForPeer:
		if r := g.relays[ctx.Sender().GetId()]; r != nil {
			g.forwardRequest(ctx, r, m.request)
		}
	case *messages.ServerRequestEnded:
		if r := g.pendingRequests[m.GetRequestId()]; r != nil {
			delete(g.pendingRequests, m.GetRequestId())
			g.transport.sendToPeer(r.sender, m, nil, proto.Size(m))
		}
	}
}

// handleEnd reports the end of the manager to the peers that watch it. This actor goes on, because it refuses what peers send from now on.
func (g *peerAuthorizer) handleEnd(ctx actor.Context) {
	g.ended = true
	for _, r := range g.relays {
		if r.longLived {
			ctx.Stop(r.self) // nothing comes from the manager any more
		}
	}
	g.transport.endWatched()
}

// endSubscription ends the manager's subscription of a resource that no peer has any more; the reply goes to no one.
func (g *peerAuthorizer) endSubscription(ctx actor.Context, at resourceKey) {
	ctx.Send(g.manager.PID(), &messages.UnsubscribeResource{Server: at.server, Uri: at.uri})
}

// forwardRequest sends a server's question to its peer, with the peerAuthorizer as its sender, because a peer can
// name no other actor. If it is too large, or the peer reads too slowly, the question is refused in the peer's name.
func (g *peerAuthorizer) forwardRequest(ctx actor.Context, r *relay, m *messages.ServerRequest) {
	// The question is recorded only if it was sent: an answer to any other counts as dropped.
	if size := proto.Size(m); size <= g.cfg.MaxMessage && g.transport.sendToPeer(r.sender, m, g.transport.authorizerPID(), size) {
		g.pendingRequests[m.GetRequestId()] = r
		return
	}
	ctx.Send(g.manager.PID(), &messages.ServerRequestReply{RequestId: m.GetRequestId(), Refused: true})
}

// handleAnswer gives a peer's answer to the manager. It counts only if that peer was asked, so that no peer can
// answer another's question.
func (g *peerAuthorizer) handleAnswer(ctx actor.Context, a peerCommand, m *messages.ServerRequestReply) {
	r := g.pendingRequests[m.GetRequestId()]
	// Two programs with one identity are one peer: either may answer.
	if r == nil || r.identity != a.identity {
		g.transport.dropped.Add(1)
		return
	}
	delete(g.pendingRequests, m.GetRequestId())
	if a.refused != nil {
		m = &messages.ServerRequestReply{RequestId: m.GetRequestId(), Refused: true} // the answer was too large: the server must not wait for ever
	}
	ctx.Send(g.manager.PID(), m)
}

// handleCommand checks a command and either answers it, or starts the relay that does. Every command with a sender
// gets exactly one reply, unless the peer leaves it unread.
func (g *peerAuthorizer) handleCommand(ctx actor.Context, a peerCommand) {
	if m, answer := a.message.(*messages.ServerRequestReply); answer {
		g.handleAnswer(ctx, a, m) // it has no reply
		return
	}
	// A command without a sender could not be answered, and its peer could not learn of a refusal.
	if a.sender == nil {
		g.transport.dropped.Add(1)
		return
	}
	reply := func(f error) {
		m := refusal.ReplyTo(a.message, f)
		if !g.transport.sendToPeer(a.sender, m, nil, proto.Size(m)) {
			g.transport.dropped.Add(1)
		}
	}
	// The rights are looked up for each command, and kept by its relay for the reply.
	rights := g.cfg.rightsOf(a.identity)
	err := a.refused
	if err == nil {
		err = g.checkCommand(rights, a)
	}
	if err != nil {
		reply(err)
		return
	}
	key := a.longLivedKey()
	switch m := a.message.(type) {
	// Unwatch ends the relay, and with it the manager's watch; it is answered here.
	case *messages.Unwatch:
		if r := g.watches[key]; r != nil {
			delete(g.watches, key)
			ctx.Stop(r.self)
		}
		reply(nil)
		return
	case *messages.Watch:
		if r := g.watches[key]; r != nil { // the newer one counts
			delete(g.watches, key)
			ctx.Stop(r.self)
			g.removeRelay(r.self)
		}
		m.Buffer = max(0, min(m.GetBuffer(), maxEvents)) // a negative buffer means the default, as 0 does
	case *messages.HandleRequests:
		if r := g.handlers[key]; r != nil { // the manager knows the handler by its relay, so the relay must stay the same
			ctx.Send(r.self, nextCommand{m})
			return
		}
	case *messages.SubscribeResource, *messages.UnsubscribeResource:
		// A nil error without pass is success: another peer still needs the subscription.
		pass, err := g.trackSubscription(a.identity, m)
		if !pass {
			reply(err)
			return
		}
	}
	// The peer may use none of the servers: the reply is that of an empty list, unless they are gone with their manager.
	if empty := g.confineServers(rights, a.message); empty {
		reply(g.closedError())
		return
	}
	g.startRelay(ctx, a, key, rights)
}

// startRelay starts the actor that stands between the command and its reply.
func (g *peerAuthorizer) startRelay(ctx actor.Context, a peerCommand, key string, rights Rights) {
	_, watch := a.message.(*messages.Watch)
	_, handle := a.message.(*messages.HandleRequests)
	r := &relay{peerAuthorizer: ctx.Self(), manager: g.manager.PID(), transport: g.transport, command: a.message, sender: a.sender, identity: a.identity,
		rights: rights, longLived: watch || handle, limit: g.cfg.MaxMessage, cost: a.size}
	if m, ok := a.message.(*messages.SubscribeResource); ok {
		r.subscription = g.subscriptions[resourceKey{m.GetServer(), m.GetUri()}][a.identity]
	}
	// Before the relay runs, because its first message is the command.
	r.stampIdentity()
	r.self = ctx.Spawn(actor.PropsFromProducer(func() actor.Actor { return r }))
	g.relays[r.self.GetId()] = r
	// The count goes down in removeRelay, when the relay has ended.
	g.countRelay(r, 1)
	if watch {
		g.watches[key] = r
	}
	if handle {
		g.handlers[key] = r
	}
}

// countRelay adds a relay to the usage of its identity and of all (n = 1), or removes it (n = -1).
func (g *peerAuthorizer) countRelay(r *relay, n int) {
	l := g.usages[r.identity]
	if l == nil {
		l = &usage{}
		g.usages[r.identity] = l
	}
	for _, l := range []*usage{l, &g.totalUsage} {
		if r.longLived {
			l.longLived += n
		} else {
			l.commands += n
			l.bytes += n * r.cost
		}
	}
	if *l == (usage{}) {
		delete(g.usages, r.identity)
	}
}

// removeRelay forgets a relay that has ended. It may be called twice for one relay.
func (g *peerAuthorizer) removeRelay(pid *actor.PID) {
	r := g.relays[pid.GetId()]
	if r == nil {
		return
	}
	delete(g.relays, pid.GetId())
	g.countRelay(r, -1)
	for _, longLived := range []map[string]*relay{g.watches, g.handlers} {
		for key, other := range longLived {
			if r.longLived && other == r {
				delete(longLived, key)
			}
		}
	}
	if !r.longLived {
		return
	}
	// The questions that it has passed on cannot be answered any more; the manager notices the end of its handler
	// itself.
	for id, other := range g.pendingRequests {
		if other == r {
			delete(g.pendingRequests, id)
		}
	}
}

// tooLargeError returns the error of a command that exceeds MaxMessage; it is not-sent.
func tooLargeError(what string, n, limit int) error {
	return &messages.Error{Op: "remote", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
		Text: fmt.Sprintf("%s has %d bytes and the limit is %d", what, n, limit), Fix: "send less, or raise MaxMessage"}
}

// exhaustedError returns the error of a command beyond a limit; it is not-sent, so the peer may try again.
func exhaustedError(text string) error {
	return &messages.Error{Op: "remote", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted, Text: text,
		Fix: "send it again later"}
}

// callerFor returns the caller that a peer's command gets: it begins with the identity, so that no peer can call in
// the name of another.
func callerFor(identity, own string) string { return strings.TrimSuffix(identity+" "+own, " ") }
