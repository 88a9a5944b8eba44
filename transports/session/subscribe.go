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
	// changeLock is held by the caller that changes the subscriptions, while it waits for the server, so that two
	// changes cannot overtake each other.
	changeLock contextMutex

	// mu guards uris. It is taken before subscriptionStreams.mu.
	mu sync.Mutex
	// uris maps each watched resource to the stream that carries its notifications; in the legacy era the values are
	// nil.
	uris map[string]*subscriptionStream
}

// addWatch records that st carries the notifications of a resource. The caller holds mu.
func (u *subscriptions) addWatch(uri string, st *subscriptionStream) {
	if u.uris == nil {
		u.uris = make(map[string]*subscriptionStream)
	}
	u.uris[uri] = st
}

// removeWatch forgets a resource that the server does not watch any more on st. If another stream has replaced st
// meanwhile, the resource stays.
func (u *subscriptions) removeWatch(uri string, st *subscriptionStream) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.uris[uri] == st {
		delete(u.uris, uri)
	}
}

// Subscribe asks the server to announce updates of a resource, which then reach Config.OnResourceUpdated. It returns
// when the server has agreed. To subscribe again to the same resource does nothing. A session watches at most 1,024
// resources.
//
// An error is a *messages.Error with Op "read" and an Outcome. It is ErrInvalid if the server does not declare that
// it offers subscriptions.
func (s *Session) Subscribe(ctx context.Context, uri string) error {
	return s.changeSubscription(ctx, uri, true)
}

// Unsubscribe ends the watch that Subscribe began. A resource that is not watched is no error. After an error the
// resource is watched as before, as far as is known.
func (s *Session) Unsubscribe(ctx context.Context, uri string) error {
	return s.changeSubscription(ctx, uri, false)
}

// changeSubscription watches a resource, or stops watching it, one change at a time. It sends nothing if the session
// already has the wanted state.
func (s *Session) changeSubscription(ctx context.Context, uri string, want bool) error {
	declared := func(c *Capabilities) bool { return c.ResourcesSubscribe }
	if e := s.checkReadRequest("resources.subscribe", "URI of the resource", uri, declared); e != nil {
		return e
	}
	// Nothing was sent while this caller waited for another one's change.
	if !s.subscriptions.changeLock.lock(ctx) {
		e := asNotSent(contextError(ctx, "before the request was sent"))
		e.Op = "read"
		return e
	}
	defer s.subscriptions.changeLock.unlock()
	// The state is looked at under the lock: the change before may have been the same.
	if s.isSubscribed(uri) == want {
		return nil
	}
	if want && len(s.subscribedURIs()) >= maxSubscriptions {
		return invalidReadError("the session has " + strconv.Itoa(maxSubscriptions) + " subscriptions already")
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
	_, e := s.requestResult(ctx, "read", request{method: method, name: uri, fields: appendString([]byte(`"uri":`), uri)})
	if e == nil {
		s.subscriptions.mu.Lock()
		defer s.subscriptions.mu.Unlock()
		if want {
			s.subscriptions.addWatch(uri, nil)
		} else {
			delete(s.subscriptions.uris, uri)
		}
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
		uris = slices.DeleteFunc(s.subscribedURIs(), func(u string) bool { return u == uri })
		if want {
			uris = append(uris, uri)
		}
	} else if !want {
		uris = nil
	}
	var st *subscriptionStream
	if len(uris) > 0 {
		st = s.newStream()
		st.uris = uris
		if e := st.openAgreed(ctx, uri, want); e != nil {
			return e
		}
	}
	s.replaceWatches(uri, uris, st)
	return nil
}

// replaceWatches records that st watches uris and that uri is watched by nothing else, and stops the streams that st
// replaces. st is nil if nothing is left to watch.
func (s *Session) replaceWatches(uri string, uris []string, st *subscriptionStream) {
	var unwatched []string
	s.subscriptions.mu.Lock()
	if old := s.subscriptions.uris[uri]; old != nil {
		old.stop()
	}
	delete(s.subscriptions.uris, uri)
	for _, u := range uris {
		if old := s.subscriptions.uris[u]; old != nil {
			old.stop()
		}
		delete(s.subscriptions.uris, u)
		if s.streams.honoursURI(st, u) {
			s.subscriptions.addWatch(u, st)
		} else {
			unwatched = append(unwatched, u)
		}
	}
	s.subscriptions.mu.Unlock()
	// The server watched these before and does not agree to them any more: they may be gone, so their owner should
	// look.
	for _, u := range unwatched {
		s.notifyResourceUpdated(u)
	}
}

// openAgreed opens a stream and waits until the server has agreed to it, at most for ownRequestTimeout. If want is
// set, the server must have agreed to uri. After an error the stream is stopped.
func (st *subscriptionStream) openAgreed(ctx context.Context, uri string, want bool) *messages.Error {
	s := st.session
	s.streams.mu.Lock()
	refused := s.streams.methodUnknown
	s.streams.mu.Unlock()
	// A server that refused the method once is not asked again.
	if refused {
		return &messages.Error{
			Op: "read", Outcome: messages.OutcomeRejected, Class: messages.ClassRejected, Code: codeMethodNotFound,
			Text: "the server does not know subscriptions/listen",
		}
	}
	// A stream that no caller waits for must not be opened.
	if e := callerLeftError(ctx); e != nil {
		e.Op = "read"
		return e
	}
	if !st.open(false) {
		return asNotSent(s.endedError("read"))
	}
	// The stream itself has no end, so the wait for the agreement needs a bound of its own.
	ctx, stop := context.WithTimeout(ctx, ownRequestTimeout)
	defer stop()
	var e *messages.Error
	select {
	case e = <-st.firstResult:
	case <-ctx.Done():
		e = contextError(ctx, "before the server had agreed to watch the resource")
		e.Op, e.Outcome = "read", messages.OutcomeUnknown
	}
	if e == nil && want && !s.streams.honoursURI(st, uri) {
		e = &messages.Error{
			Op: "read", Outcome: messages.OutcomeRejected, Class: messages.ClassRejected,
			Text: "the server does not agree to watch the resource",
		}
	}
	if e != nil {
		st.stop()
	}
	return e
}

// isSubscribed reports whether the session watches a resource.
func (s *Session) isSubscribed(uri string) bool {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	_, ok := s.subscriptions.uris[uri]
	return ok
}

// subscribedURIs returns the resources that the session watches, sorted.
func (s *Session) subscribedURIs() []string {
	s.subscriptions.mu.Lock()
	defer s.subscriptions.mu.Unlock()
	return slices.Sorted(maps.Keys(s.subscriptions.uris))
}
