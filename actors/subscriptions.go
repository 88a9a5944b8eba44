package actors

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// MaxWatched bounds the resources of one server that can be subscribed to.
const MaxWatched = 1024

// Subscriptions are the resources of a server of which callers want updates. They outlive connections, and end with the
// server: whenever it becomes connected it is asked for them again. Safe for concurrent use.
type Subscriptions struct {
	mu   sync.Mutex
	uris map[string]*subscription
}

// subscription is the state of one resource. It goes when nobody asks for it any more and no server has ever agreed to it.
type subscription struct {
	agreed bool // a server has agreed once
	asking int  // callers whose request is under way
}

// addURI adds a resource for a caller who now asks for it, and returns what noteAnswer needs. It returns nil if there are too many.
func (w *Subscriptions) addURI(uri string) *subscription {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.uris[uri]
	if s == nil {
		// A second subscription to a resource costs no place.
		if len(w.uris) >= MaxWatched {
			return nil
		}
		if w.uris == nil {
			w.uris = map[string]*subscription{}
		}
		s = &subscription{}
		w.uris[uri] = s
	}
	s.asking++
	return s
}

// noteAnswer notes the answer to a caller who asked. A refusal says nothing about the requests of other callers that are still under
// way: one of them may be agreed to.
func (w *Subscriptions) noteAnswer(uri string, s *subscription, agreed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.asking--
	s.agreed = s.agreed || agreed
	// The answer may come after another caller has unsubscribed, and even subscribed anew.
	if w.uris[uri] == s && !s.agreed && s.asking == 0 {
		delete(w.uris, uri)
	}
}

// removeURI removes a resource.
func (w *Subscriptions) removeURI(uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.uris, uri)
}

// hasURI reports whether there is any subscription (some), and whether there is one to this resource.
func (w *Subscriptions) hasURI(uri string) (some, this bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, this = w.uris[uri]
	return len(w.uris) > 0, this
}

// Any reports whether there is any subscription.
func (w *Subscriptions) Any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.uris) > 0
}

// URIs returns the resources that are subscribed to, sorted.
func (w *Subscriptions) URIs() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.uris))
}

// Subscribe subscribes to a resource: it returns when the server has agreed, and every later connection of the server subscribes
// again. For a caller who has an instance of the server it is that of the instance. The error is a *messages.Error with Op "read"; there is no subscription then, unless there was one before.
func (c *Calls) Subscribe(ctx context.Context, server, uri string) error {
	own := &Request{Method: "resources/subscribe", Server: server}
	if err := c.EnterInstance(ctx, own); err != nil {
		return err
	}
	defer own.LeaveInstance()
	cell := c.Cell(own.target())
	// The resource is added before the request, so that an update which overtakes the answer is published.
	var asked *subscription
	if cell != nil {
		if asked = cell.Subscriptions.addURI(uri); asked == nil {
			return &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassExhausted, Server: server,
				Text: "1,024 of its resources are watched already", Fix: "unsubscribe from others first"}
		}
	}
	// A subscription takes no slot: it costs the server nothing, and must not wait behind calls.
	err := c.Handle(ctx, &Request{Method: "resources/subscribe", Server: server, Name: uri, Repeatable: true, SkipsQueue: true, Send: func(ctx context.Context, s *session.Session, _ *Request) error {
		return s.Subscribe(ctx, uri)
	}})
	if cell != nil {
		cell.Subscriptions.noteAnswer(uri, asked, err == nil)
	}
	return err
}

// Unsubscribe ends what Subscribe began. A server that is not connected is not asked.
func (c *Calls) Unsubscribe(ctx context.Context, server, uri string) error {
	own := &Request{Method: "resources/unsubscribe", Server: server}
	if err := c.EnterInstance(ctx, own); err != nil {
		return err
	}
	defer own.LeaveInstance()
	cell := c.Cell(own.target())
	// The resource is removed first, so that a connection which opens now does not subscribe again.
	if cell != nil {
		cell.Subscriptions.removeURI(uri)
		// A server that is not connected takes no request. The server's actor ends the subscription when it is connected again, if a
		// disabled server kept its connection; updates that the server sends until then are dropped.
		if cell.View().State.Phase != messages.Connected {
			return nil
		}
	}
	err := c.Handle(ctx, &Request{Method: "resources/unsubscribe", Server: server, Name: uri, SkipsQueue: true, SkipsRules: true, Send: func(ctx context.Context, s *session.Session, _ *Request) error {
		return s.Unsubscribe(ctx, uri)
	}})
	if cell != nil && errors.Is(err, messages.ErrNotSent) && cell.View().State.Phase != messages.Connected {
		return nil
	}
	return err
}

// matchSubscriptions has a server that has become connected watch the resources of watched, and nothing else, one after the other, in a
// goroutine. A new connection watches nothing yet. One that was kept while the server was disabled may watch what was given up meanwhile.
// A resource that is refused stays listed, because the next connection's server may have it again. hide removes the server's secrets from
// a text.
func (a *attempt) matchSubscriptions(
	sess *session.Session, watched *Subscriptions, timeout time.Duration, hide func(string) string, log *zap.Logger,
) {
	uris := slices.Concat(watched.URIs(), sess.WatchedURIs())
	// Most servers have no subscriptions, and then no goroutine is started.
	if len(uris) == 0 {
		return
	}
	slices.Sort(uris)
	uris = slices.Compact(uris)
	a.runningSteps.Add(1)
	go func() { // ends with the session, or after a timeout for each
		defer a.runningSteps.Done()
		labelGoroutine(a.name, a.spec)
		defer func() {
			if r := recover(); r != nil {
				log.Error("panic while subscribing again", zap.String("server", a.name), zap.Any("panic", r))
			}
		}()
		for _, uri := range uris {
			// One resource that the server does not answer for must not keep the others from their turn.
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			err := sess.MatchSubscription(ctx, uri, func() bool {
				_, isWanted := watched.hasURI(uri)
				return isWanted
			})
			cancel()
			select {
			case <-sess.Dead():
				return
			default:
			}
			if err != nil {
				log.Warn("a resource is not watched as callers want", zap.String("server", a.name),
					zap.String("error", hide(err.Error())))
			}
		}
	}()
}
