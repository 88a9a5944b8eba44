package remote

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A resourceKey names a resource of a server.
type resourceKey struct{ server, uri string }

// A subscription is that of one identity to one resource.
type subscription struct {
	agreed  bool // the manager has answered one of the identity's commands with success
	pending int  // commands that the manager has not answered yet
}

// subscriptionAnswered reports the manager's answer to a SubscribeResource. Its relay sends it to the peerAuthorizer.
type subscriptionAnswered struct {
	// identity is that of the peer's certificate, not a name that the peer gave.
	identity     string
	resource     resourceKey
	subscription *subscription // as it was when the relay was started
	failed       bool
}

// trackSubscription records which identity subscribes to which resource. pass is true if the command must reach the
// manager: an unsubscription only if no other peer has the resource. A peer can end its own subscription only.
func (g *peerAuthorizer) trackSubscription(identity string, m proto.Message) (pass bool, err error) {
	at := resourceKey{stringField(m, "server"), stringField(m, "uri")}
	s := g.subscriptions[at][identity]
	if _, begin := m.(*messages.SubscribeResource); !begin {
		if s == nil {
			return false, deniedError("unsubscribe", at.server, "the peer has not subscribed to the resource", "")
		}
		// The manager's own subscription ends with the last peer's.
		return g.removeSubscription(identity, at), nil
	}
	if s == nil {
		l := g.usages[identity]
		if l != nil && l.subscriptions >= maxSubscriptions {
			return false, exhaustedError(fmt.Sprintf("the peer has %d subscriptions already", maxSubscriptions))
		}
		if l == nil {
			l = &usage{}
			g.usages[identity] = l
		}
		l.subscriptions++
		if g.subscriptions[at] == nil {
			g.subscriptions[at] = map[string]*subscription{}
		}
		s = &subscription{}
		g.subscriptions[at][identity] = s
	}
	// The place is taken before the manager has answered, so that many commands at once stay within the limit.
	s.pending++
	return true, nil
}

// noteAnswer records the manager's answer. A subscription of which no command succeeded, and none is under way, gives
// its place back. unused is true if the manager has subscribed and no peer has the resource any more.
func (g *peerAuthorizer) noteAnswer(m subscriptionAnswered) (unused bool) {
	s := m.subscription
	// The peer has unsubscribed meanwhile, or is gone.
	if s == nil || g.subscriptions[m.resource][m.identity] != s {
		return !m.failed && len(g.subscriptions[m.resource]) == 0
	}
	s.pending--
	s.agreed = s.agreed || !m.failed
	if !s.agreed && s.pending == 0 {
		g.removeSubscription(m.identity, m.resource)
	}
	return false
}

// removeSubscription forgets the subscription of an identity and reports whether it was the last of the resource.
func (g *peerAuthorizer) removeSubscription(identity string, at resourceKey) (last bool) {
	delete(g.subscriptions[at], identity)
	// An identity without anything in use leaves no entry, so the map is bounded by the peers that use something.
	if l := g.usages[identity]; l != nil {
		if l.subscriptions--; *l == (usage{}) {
			delete(g.usages, identity)
		}
	}
	if len(g.subscriptions[at]) > 0 {
		return false
	}
	delete(g.subscriptions, at)
	return true
}

// removeSubscriptions forgets every subscription of an identity and returns the resources that no other peer has.
func (g *peerAuthorizer) removeSubscriptions(identity string) (unused []resourceKey) {
	// All resources are walked: an identity has few of them, and goes rarely.
	for at, subscriptions := range g.subscriptions {
		if subscriptions[identity] != nil && g.removeSubscription(identity, at) {
			unused = append(unused, at)
		}
	}
	return unused
}
