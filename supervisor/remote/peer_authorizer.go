package remote

import (
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// peerCommand is a command of a peer, with the identity of its stream.
type peerCommand struct {
	identity string
	sender   *actor.PID // at the address of the stream; nil if the peer wants no reply
	message  proto.Message
	size     int   // what it costs to keep
	refused  error // the wire's own reason
	received chan<- struct{}
}

// addressLost says that an address is not an identity's any more.
type addressLost struct{ identity, address string }

// requestForPeer is what a server asks, on its way to the peer that answers.
type requestForPeer struct{ request *messages.ServerRequest }

// peerAuthorizer is the one actor that peers can name. It refuses what a peer may not ask, and gives everything else to the
// manager through a relay of its own, which checks what comes back.
type peerAuthorizer struct {
	cfg       Config
	transport *peerTransport
	manager   *supervisor.Manager

	relays          map[string]*relay // by their id
	watches         map[string]*relay // by the identity and the actor of the peer
	handlers        map[string]*relay // those that answer what servers ask, by the same
	pendingRequests map[uint64]*relay // questions that wait for a peer's answer
	usages          map[string]*usage // by identity
	totalUsage      usage
	// subscribers are the identities that subscribed to a resource, by server and URI.
	subscribers map[[2]string]map[string]struct{}
}

// usage is what the relays of an identity, or of all, hold.
type usage struct{ commands, bytes, longLived, subscriptions int }

func newGateway(cfg Config, w *peerTransport, m *supervisor.Manager) *peerAuthorizer {
	return &peerAuthorizer{cfg: cfg, transport: w, manager: m, relays: map[string]*relay{}, watches: map[string]*relay{},
		handlers: map[string]*relay{}, pendingRequests: map[uint64]*relay{}, usages: map[string]*usage{},
		subscribers: map[[2]string]map[string]struct{}{}}
}

// Receive implements actor.Actor.
func (g *peerAuthorizer) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case peerCommand:
		defer func() { m.received <- struct{}{} }() // it has room for all of its frame
		g.handleCommand(ctx, m)
	case *actor.Terminated:
		g.removeRelay(m.Who)
	case addressLost:
		for _, r := range g.relays {
			if r.longLived && r.identity == m.identity && r.sender.GetAddress() == m.address {
				ctx.Stop(r.self)
			}
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

// forwardRequest hands a server's question to its peer. The gate is its sender: a peer can name nobody else.
func (g *peerAuthorizer) forwardRequest(ctx actor.Context, r *relay, m *messages.ServerRequest) {
	if size := proto.Size(m); size <= g.cfg.MaxMessage && g.transport.sendToPeer(r.sender, m, g.transport.authorizerPID(), size) {
		g.pendingRequests[m.GetRequestId()] = r
		return
	}
	ctx.Send(g.manager.PID(), &messages.ServerRequestReply{RequestId: m.GetRequestId(), Refused: true})
}

// handleAnswer takes a peer's answer to what that peer was asked.
func (g *peerAuthorizer) handleAnswer(ctx actor.Context, a peerCommand, m *messages.ServerRequestReply) {
	r := g.pendingRequests[m.GetRequestId()]
	if r == nil || r.identity != a.identity {
		g.transport.dropped.Add(1)
		return
	}
	delete(g.pendingRequests, m.GetRequestId())
	if a.refused != nil {
		m = &messages.ServerRequestReply{RequestId: m.GetRequestId(), Refused: true}
	}
	ctx.Send(g.manager.PID(), m)
}

func (g *peerAuthorizer) handleCommand(ctx actor.Context, a peerCommand) {
	if m, answer := a.message.(*messages.ServerRequestReply); answer {
		g.handleAnswer(ctx, a, m) // it has no reply
		return
	}
	if a.sender == nil {
		g.transport.dropped.Add(1)
		return
	}
	reply := func(f error) {
		m := messageRules[messageName(a.message)].failureReply(a.message, messages.FailureOf(f))
		if !g.transport.sendToPeer(a.sender, m, nil, proto.Size(m)) {
			g.transport.dropped.Add(1)
		}
	}
	rights := g.cfg.rightsOf(a.identity)
	err := a.refused
	if err == nil {
		err = g.checkCommand(rights, a)
	}
	if err != nil {
		reply(err)
		return
	}
	key := a.identity + " " + a.sender.GetAddress() + " " + a.sender.GetId()
	switch m := a.message.(type) {
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
		m.Buffer = max(0, min(m.GetBuffer(), maxEvents))
	case *messages.HandleRequests:
		if r := g.handlers[key]; r != nil { // the manager knows a peer by its relay
			ctx.Send(r.self, nextCommand{m})
			return
		}
	case *messages.SubscribeResource, *messages.UnsubscribeResource:
		pass, err := g.trackSubscription(a.identity, m)
		if !pass {
			reply(err)
			return
		}
	}
	if empty := g.confineServers(rights, a.message); empty {
		reply(nil)
		return
	}
	g.startRelay(ctx, a, key, rights)
}

// startRelay starts what stands between the command and its reply.
func (g *peerAuthorizer) startRelay(ctx actor.Context, a peerCommand, key string, rights Rights) {
	_, watch := a.message.(*messages.Watch)
	_, handle := a.message.(*messages.HandleRequests)
	r := &relay{peerAuthorizer: ctx.Self(), manager: g.manager.PID(), transport: g.transport, command: a.message, sender: a.sender, identity: a.identity,
		rights: rights, longLived: watch || handle, limit: g.cfg.MaxMessage, cost: a.size}
	r.stampIdentity()
	r.self = ctx.Spawn(actor.PropsFromProducer(func() actor.Actor { return r }))
	g.relays[r.self.GetId()] = r
	g.countRelay(r, 1)
	if watch {
		g.watches[key] = r
	}
	if handle {
		g.handlers[key] = r
	}
}

// countRelay adds a relay to what its identity and all hold, or takes it away.
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

// removeRelay forgets a relay.
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
	for id, other := range g.pendingRequests {
		if other == r {
			delete(g.pendingRequests, id)
		}
	}
}

// trackSubscription keeps who subscribed to what: a peer ends its own subscription, and the manager's only if it is the last peer
// that has it.
func (g *peerAuthorizer) trackSubscription(identity string, m proto.Message) (pass bool, err error) {
	at := [2]string{stringField(m, "server"), stringField(m, "uri")}
	_, subscribed := g.subscribers[at][identity]
	l := g.usages[identity]
	if l == nil {
		l = &usage{}
		g.usages[identity] = l
	}
	defer func() {
		if *l == (usage{}) {
			delete(g.usages, identity)
		}
	}()
	if _, begin := m.(*messages.SubscribeResource); begin {
		if !subscribed && l.subscriptions >= maxSubscriptions {
			return false, exhaustedError(fmt.Sprintf("the peer has %d subscriptions already", maxSubscriptions))
		}
		if !subscribed {
			l.subscriptions++
		}
		if g.subscribers[at] == nil {
			g.subscribers[at] = map[string]struct{}{}
		}
		g.subscribers[at][identity] = struct{}{}
		return true, nil
	}
	if !subscribed {
		return false, deniedError("unsubscribe", at[0], "the peer has not subscribed to the resource", "")
	}
	l.subscriptions--
	delete(g.subscribers[at], identity)
	if len(g.subscribers[at]) > 0 {
		return false, nil
	}
	delete(g.subscribers, at)
	return true, nil
}

func tooLargeError(what string, n, limit int) error {
	return &messages.Error{Op: "remote", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
		Text: fmt.Sprintf("%s has %d bytes and the limit is %d", what, n, limit), Fix: "send less, or raise MaxMessage"}
}

func exhaustedError(text string) error {
	return &messages.Error{Op: "remote", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted, Text: text,
		Fix: "send it again later"}
}

// callerFor is on whose behalf a peer calls: nobody calls as another peer's.
func callerFor(identity, own string) string { return strings.TrimSuffix(identity+" "+own, " ") }
