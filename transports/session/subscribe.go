package session

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// maxSubscriptions bounds the resources that one session watches.
const maxSubscriptions = 1024

// subscriptions are the resources that a session watches.
type subscriptions struct {
	// turn is held by whoever changes them, while the server is asked.
	turn chan struct{}

	mu   sync.Mutex
	uris map[string]struct{}
}

// Subscribe asks the server to tell when a resource is updated (Config.OnResourceUpdated). It returns when the server has
// agreed. To subscribe again to the same resource does nothing. A session watches at most 1,024 resources.
//
// An error is a *messages.Error with Op "read" and an Outcome. It is ErrInvalid if the server does not declare that it
// offers subscriptions.
func (s *Session) Subscribe(ctx context.Context, uri string) error {
	return s.resubscribe(ctx, uri, true)
}

// Unsubscribe ends what Subscribe began. A resource that is not watched is no error. After an error the resource is
// watched as before, as far as is known.
func (s *Session) Unsubscribe(ctx context.Context, uri string) error {
	return s.resubscribe(ctx, uri, false)
}

func (s *Session) resubscribe(ctx context.Context, uri string, want bool) error {
	declared := func(c *Capabilities) bool { return c.ResourcesSubscribe }
	if e := s.mayRead("resources.subscribe", "URI of the resource", uri, declared); e != nil {
		return e
	}
	select {
	case s.subscriptions.turn <- struct{}{}:
		defer func() { <-s.subscriptions.turn }()
	case <-ctx.Done():
		e := notSent(contextError(ctx, "before the request was sent"))
		e.Op = "read"
		return e
	}
	if s.isSubscribed(uri) == want {
		return nil
	}
	if want && len(s.subscribed()) >= maxSubscriptions {
		return notRead("the session has " + strconv.Itoa(maxSubscriptions) + " subscriptions already")
	}
	if e := s.askSubscription(ctx, uri, want); e != nil {
		return e
	}
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	if want {
		s.subscriptions.uris[uri] = struct{}{}
	} else {
		delete(s.subscriptions.uris, uri)
	}
	return nil
}

// askSubscription asks in the way of the legacy era.
//
// 2025-11-25, Resources: resources/subscribe and resources/unsubscribe, for servers whose capability resources has
// subscribe: "whether the client can subscribe to be notified of changes to individual resources".
func (s *Session) askSubscription(ctx context.Context, uri string, want bool) *messages.Error {
	method := "resources/unsubscribe"
	if want {
		method = "resources/subscribe"
	}
	_, e := s.requestResult(ctx, "read", request{method: method, name: uri, fields: appendString([]byte(`"uri":`), uri)})
	return e
}

func (s *Session) isSubscribed(uri string) bool {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	_, ok := s.subscriptions.uris[uri]
	return ok
}

// subscribed are the resources that are watched, in order.
func (s *Session) subscribed() []string {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	return slices.Sorted(maps.Keys(s.subscriptions.uris))
}
