package session

import (
	"context"
	"slices"
	"strconv"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/subscriptions"
)

// Subscribe asks the server to announce updates of a resource, which then reach Config.OnResourceUpdated. It returns
// when the server has agreed. To subscribe again to the same resource does nothing. A session watches at most 1,024
// resources.
//
// An error is a *messages.Error with Op "read" and an Outcome. It is ErrInvalid if the server does not declare that
// it offers subscriptions.
func (s *Session) Subscribe(ctx context.Context, uri string) error {
	return s.changeSubscription(ctx, uri, func() bool { return true })
}

// Unsubscribe ends the watch that Subscribe began. A resource that is not watched is no error. After an error the
// resource is watched as before; where the server may have ended the watch, the next Subscribe asks it again.
func (s *Session) Unsubscribe(ctx context.Context, uri string) error {
	return s.changeSubscription(ctx, uri, func() bool { return false })
}

// MatchSubscription subscribes to a resource if isWanted says so, and unsubscribes otherwise. It asks isWanted when no other change is
// under way: who notes what is wanted before Subscribe or Unsubscribe has the last word.
func (s *Session) MatchSubscription(ctx context.Context, uri string, isWanted func() bool) error {
	return s.changeSubscription(ctx, uri, isWanted)
}

// WatchedURIs returns the resources that the session watches, sorted.
func (s *Session) WatchedURIs() []string { return s.watches.URIList() }

// changeSubscription watches a resource, or stops watching it, one change at a time. It sends nothing if the session
// already has the wanted state.
func (s *Session) changeSubscription(ctx context.Context, uri string, isWanted func() bool) error {
	if e := s.checkReadRequest("resources/subscribe", "URI of the resource", uri); e != nil {
		return e
	}
	// Nothing was sent while this caller waited for another one's change.
	if !s.watchLock.Lock(ctx) {
		e := outcome.MarkNotSent(outcome.ContextError(ctx, "before the request was sent"))
		e.Op = "read"
		return e
	}
	defer s.watchLock.Unlock()
	// The state is looked at under the lock: the change before may have been the same.
	want := isWanted()
	if s.watches.Contains(uri) == want {
		return nil
	}
	if want && len(s.watches.URIList()) >= subscriptions.MaxSubscriptions {
		return invalidReadError("the session has " + strconv.Itoa(subscriptions.MaxSubscriptions) + " subscriptions already")
	}
	// The two eras differ only in how the server is asked.
	ask := s.requestSubscription
	if s.modern.Load() != nil {
		ask = s.listenToResource
	}
	if e := ask(ctx, uri, want); e != nil {
		return e
	}
	return nil
}

// requestSubscription changes one subscription in the way of the legacy era, and records it if the server agreed.
//
// 2025-11-25, Resources: resources/subscribe and resources/unsubscribe, for servers whose capability resources has
// subscribe: "whether the client can subscribe to be notified of changes to individual resources".
func (s *Session) requestSubscription(ctx context.Context, uri string, want bool) *messages.Error {
	method := "resources/unsubscribe"
	if want {
		method = "resources/subscribe"
	}
	_, e := s.requestResult(ctx, "read", request{method: method, name: uri, fields: jsonrpc.AppendString([]byte(`"uri":`), uri)})
	switch {
	case e == nil && want:
		s.watches.Replace(uri, []string{uri}, nil)
	// A server that has not answered may have ended the subscription: the next one who wants it asks anew.
	case !want && (e == nil || e.Outcome == messages.OutcomeUnknown):
		s.watches.Replace(uri, nil, nil)
	}
	return e
}

// listenToResource changes one subscription in the way of the modern era, by standing requests. Over HTTP all
// resources share one, because each holds a connection: a changed set opens a new one, and the old one ends when the
// server has agreed to the new one, so that no update is missed in between. Elsewhere each resource has its own: it
// costs nothing there, and a server that keeps one subscription per resource and conversation forgets the new one
// when the old one ends (the Go SDK, v1.8.0).
//
// 2026-07-28, Subscriptions: "A client MAY have multiple active subscriptions concurrently".
func (s *Session) listenToResource(ctx context.Context, uri string, want bool) *messages.Error {
	uris := []string{uri}
	if s.overHTTP() {
		uris = slices.DeleteFunc(s.watches.URIList(), func(u string) bool { return u == uri })
		if want {
			uris = append(uris, uri)
		}
	} else if !want {
		uris = nil
	}
	var st *subscriptions.Stream
	if len(uris) > 0 {
		st = s.streams.NewStream(subscriptions.Filter{URIs: uris})
		if e := st.OpenAgreed(ctx, uri, want); e != nil {
			return e
		}
	}
	// The server watched these before and does not agree to them any more: they may be gone, so their owner should
	// look.
	for _, lost := range s.watches.Replace(uri, uris, st) {
		s.notifyResourceUpdated(lost)
	}
	return nil
}
