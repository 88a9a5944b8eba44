package remote

import (
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// arrived is a command of a peer, with the identity of its stream.
type arrived struct {
	identity string
	sender   *actor.PID // at the address of the stream; nil if the peer wants no reply
	message  proto.Message
	size     int   // what it costs to keep
	refused  error // the wire's own reason
	received chan<- struct{}
}

// gone says that an address is not an identity's any more.
type gone struct{ identity, address string }

// question is what a server asks, on its way to the peer that answers.
type question struct{ request *messages.ServerRequest }

// gatekeeper is the one actor that peers can name. It refuses what a peer may not ask, and gives everything else to the
// manager through a relay of its own, which checks what comes back.
type gatekeeper struct {
	cfg     Config
	wire    *wire
	manager *supervisor.Manager

	relays  map[string]*relay // by their id
	watches map[string]*relay // by the identity and the actor of the peer
	clerks  map[string]*relay // those that answer what servers ask, by the same
	asked   map[uint64]*relay // questions that wait for a peer's answer
	loads   map[string]*load  // by identity
	all     load
	// subscribed are the identities that subscribed to a resource, by server and URI.
	subscribed map[[2]string]map[string]struct{}
}

// load is what the relays of an identity, or of all, hold.
type load struct{ commands, bytes, standing, subscriptions int }

func newGatekeeper(cfg Config, w *wire, m *supervisor.Manager) *gatekeeper {
	return &gatekeeper{cfg: cfg, wire: w, manager: m, relays: map[string]*relay{}, watches: map[string]*relay{},
		clerks: map[string]*relay{}, asked: map[uint64]*relay{}, loads: map[string]*load{},
		subscribed: map[[2]string]map[string]struct{}{}}
}

// Receive implements actor.Actor.
func (g *gatekeeper) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case arrived:
		defer func() { m.received <- struct{}{} }() // it has room for all of its frame
		g.command(ctx, m)
	case *actor.Terminated:
		g.ended(m.Who)
	case gone:
		for _, r := range g.relays {
			if r.stays && r.identity == m.identity && r.sender.GetAddress() == m.address {
				ctx.Stop(r.self)
			}
		}
	case question:
		if r := g.relays[ctx.Sender().GetId()]; r != nil {
			g.ask(ctx, r, m.request)
		}
	case *messages.ServerRequestEnded:
		if r := g.asked[m.GetRequestId()]; r != nil {
			delete(g.asked, m.GetRequestId())
			g.wire.toPeer(r.sender, m, nil, proto.Size(m))
		}
	}
}

// ask hands a server's question to its peer. The gate is its sender: a peer can name nobody else.
func (g *gatekeeper) ask(ctx actor.Context, r *relay, m *messages.ServerRequest) {
	if size := proto.Size(m); size <= g.cfg.MaxMessage && g.wire.toPeer(r.sender, m, g.wire.gatePID(), size) {
		g.asked[m.GetRequestId()] = r
		return
	}
	ctx.Send(g.manager.PID(), &messages.ServerRequestReply{RequestId: m.GetRequestId(), Refused: true})
}

// answered takes a peer's answer to what that peer was asked.
func (g *gatekeeper) answered(ctx actor.Context, a arrived, m *messages.ServerRequestReply) {
	r := g.asked[m.GetRequestId()]
	if r == nil || r.identity != a.identity {
		g.wire.dropped.Add(1)
		return
	}
	delete(g.asked, m.GetRequestId())
	if a.refused != nil {
		m = &messages.ServerRequestReply{RequestId: m.GetRequestId(), Refused: true}
	}
	ctx.Send(g.manager.PID(), m)
}

func (g *gatekeeper) command(ctx actor.Context, a arrived) {
	if m, answer := a.message.(*messages.ServerRequestReply); answer {
		g.answered(ctx, a, m) // it has no reply
		return
	}
	if a.sender == nil {
		g.wire.dropped.Add(1)
		return
	}
	reply := func(f error) {
		m := table[nameOf(a.message)].refuse(a.message, messages.FailureOf(f))
		if !g.wire.toPeer(a.sender, m, nil, proto.Size(m)) {
			g.wire.dropped.Add(1)
		}
	}
	rights := g.cfg.rightsOf(a.identity)
	err := a.refused
	if err == nil {
		err = g.check(rights, a)
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
			g.ended(r.self)
		}
		m.Buffer = max(0, min(m.GetBuffer(), maxEvents))
	case *messages.HandleRequests:
		if r := g.clerks[key]; r != nil { // the manager knows a peer by its relay
			ctx.Send(r.self, further{m})
			return
		}
	case *messages.SubscribeResource, *messages.UnsubscribeResource:
		pass, err := g.subscribe(a.identity, m)
		if !pass {
			reply(err)
			return
		}
	}
	if empty := g.confine(rights, a.message); empty {
		reply(nil)
		return
	}
	g.relay(ctx, a, key, rights)
}

// relay starts what stands between the command and its reply.
func (g *gatekeeper) relay(ctx actor.Context, a arrived, key string, rights Rights) {
	_, watch := a.message.(*messages.Watch)
	_, handle := a.message.(*messages.HandleRequests)
	r := &relay{gate: ctx.Self(), to: g.manager.PID(), wire: g.wire, command: a.message, sender: a.sender, identity: a.identity,
		rights: rights, stays: watch || handle, limit: g.cfg.MaxMessage, cost: a.size}
	r.name()
	r.self = ctx.Spawn(actor.PropsFromProducer(func() actor.Actor { return r }))
	g.relays[r.self.GetId()] = r
	g.count(r, 1)
	if watch {
		g.watches[key] = r
	}
	if handle {
		g.clerks[key] = r
	}
}

// count adds a relay to what its identity and all hold, or takes it away.
func (g *gatekeeper) count(r *relay, n int) {
	l := g.loads[r.identity]
	if l == nil {
		l = &load{}
		g.loads[r.identity] = l
	}
	for _, l := range []*load{l, &g.all} {
		if r.stays {
			l.standing += n
		} else {
			l.commands += n
			l.bytes += n * r.cost
		}
	}
	if *l == (load{}) {
		delete(g.loads, r.identity)
	}
}

// ended forgets a relay.
func (g *gatekeeper) ended(pid *actor.PID) {
	r := g.relays[pid.GetId()]
	if r == nil {
		return
	}
	delete(g.relays, pid.GetId())
	g.count(r, -1)
	for _, standing := range []map[string]*relay{g.watches, g.clerks} {
		for key, other := range standing {
			if r.stays && other == r {
				delete(standing, key)
			}
		}
	}
	if !r.stays {
		return
	}
	for id, other := range g.asked {
		if other == r {
			delete(g.asked, id)
		}
	}
}

// subscribe keeps who subscribed to what: a peer ends its own subscription, and the manager's only if it is the last peer
// that has it.
func (g *gatekeeper) subscribe(identity string, m proto.Message) (pass bool, err error) {
	at := [2]string{text(m, "server"), text(m, "uri")}
	_, has := g.subscribed[at][identity]
	l := g.loads[identity]
	if l == nil {
		l = &load{}
		g.loads[identity] = l
	}
	defer func() {
		if *l == (load{}) {
			delete(g.loads, identity)
		}
	}()
	if _, begin := m.(*messages.SubscribeResource); begin {
		if !has && l.subscriptions >= maxSubscriptions {
			return false, exhausted(fmt.Sprintf("the peer has %d subscriptions already", maxSubscriptions))
		}
		if !has {
			l.subscriptions++
		}
		if g.subscribed[at] == nil {
			g.subscribed[at] = map[string]struct{}{}
		}
		g.subscribed[at][identity] = struct{}{}
		return true, nil
	}
	if !has {
		return false, denied("unsubscribe", at[0], "the peer has not subscribed to the resource", "")
	}
	l.subscriptions--
	delete(g.subscribed[at], identity)
	if len(g.subscribed[at]) > 0 {
		return false, nil
	}
	delete(g.subscribed, at)
	return true, nil
}

func tooLarge(what string, n, limit int) error {
	return &messages.Error{Op: "remote", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
		Text: fmt.Sprintf("%s has %d bytes and the limit is %d", what, n, limit), Fix: "send less, or raise MaxMessage"}
}

func exhausted(text string) error {
	return &messages.Error{Op: "remote", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted, Text: text,
		Fix: "send it again later"}
}

// caller is on whose behalf a peer calls: nobody calls as another peer's.
func caller(identity, own string) string { return strings.TrimSuffix(identity+" "+own, " ") }
