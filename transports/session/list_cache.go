package session

import (
	"context"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// listFetchTimeout bounds one fetch of a list, whichever callers wait for it.
	listFetchTimeout = 2 * time.Minute
	// maxAgeUnannounced bounds the age of a cached list whose server does not announce changes; maxAgeHTTP bounds it
	// over HTTP in the legacy era, where a server may announce changes and have no stream to send them on.
	maxAgeUnannounced = 5 * time.Second
	maxAgeHTTP        = time.Minute
)

// A listCache keeps one list of a session. All methods are safe for concurrent use.
//
//  1. At most one fetch is under way.
//  2. No caller gets a list whose fetch began before the newest change that the server had announced when the
//     caller asked.
//  3. A cached list was fetched after the newest change, and is valid now.
type listCache[T any] struct {
	session *Session
	kind    *listKind[T]
	// declared reports whether the server has the list, and whether it announces changes of it.
	declared func(*Capabilities) (declared, tellsChanges bool)

	// mu guards the fields below. spawn and the session's memory are called while it is held.
	mu          sync.Mutex
	changes     uint64 // number of changes that the server has announced
	used        bool   // a caller has asked for the list
	cached      *Listing[T]
	until       time.Time     // the end of cached's validity; zero: until it changes
	memoryTaken int64         // bytes that cached has reserved in Session.memory
	fetch       *listFetch[T] // the one under way, nil if there is none
}

// A listFetch is one fetch of a list. Its callers share it and read the result after done is closed.
type listFetch[T any] struct {
	done    chan struct{} // closed when list and err are set
	changes uint64        // listCache.changes when the fetch began
	list    Listing[T]
	err     *messages.Error
}

// init sets the fields that never change; the zero value of the others is an empty cache.
func (h *listCache[T]) init(s *Session, k *listKind[T], declared func(*Capabilities) (bool, bool)) {
	h.session, h.kind, h.declared = s, k, declared
}

// get returns the list as it is now: the cached one if it is valid, else that of a fetch. It waits for a fetch no
// longer than ctx lasts; the fetch itself goes on for the other callers. A server that does not declare the list has
// an empty one.
func (h *listCache[T]) get(ctx context.Context) (Listing[T], error) {
	s := h.session
	if e := s.endedError("read"); e != nil {
		return Listing[T]{}, asNotSent(e)
	}
	info := s.info.Load()
	if info == nil {
		return Listing[T]{}, invalidReadError("the " + h.kind.plural + " were asked for before the handshake")
	}
	if declared, _ := h.declared(&info.Capabilities); !declared {
		return Listing[T]{Public: true}, nil
	}
	if e := callerLeftError(ctx); e != nil {
		e.Op = "read"
		return Listing[T]{}, e
	}
	// A fetch that began before a change is waited for as well, and its list is dropped: the next round begins or
	// finds a newer one.
	for {
		cached, f, current := h.findOrFetch()
		if cached != nil {
			return *cached, nil
		}
		if f == nil {
			return Listing[T]{}, asNotSent(s.endedError("read"))
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			e := contextError(ctx, "before there was an answer")
			e.Op, e.Outcome = "read", messages.OutcomeUnknown
			return Listing[T]{}, e
		}
		switch {
		case !current: // the fetch began before the newest change, so its list may be the old one: once more
		case f.err != nil:
			e := *f.err // the fetch is shared, and a caller may complete its error
			return Listing[T]{}, &e
		default:
			return f.list, nil
		}
	}
}

// findOrFetch returns the cached list if it is valid, else the fetch that is under way, which it begins if there is
// none. current is true if the fetch began after the newest change. Both are nil when the session is over.
func (h *listCache[T]) findOrFetch() (cached *Listing[T], f *listFetch[T], current bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = true
	if h.cached != nil && (h.until.IsZero() || time.Now().Before(h.until)) {
		return h.cached, nil, true
	}
	h.dropCached()
	if h.fetch == nil {
		f := &listFetch[T]{done: make(chan struct{}), changes: h.changes}
		if !h.session.spawn(func() { h.runFetch(f) }) {
			return nil, nil, false
		}
		h.fetch = f
	}
	return nil, h.fetch, h.fetch.changes == h.changes
}

// runFetch fetches the list. It belongs to the session and not to a caller, so the end of one caller's context does
// not take the list from the others.
func (h *listCache[T]) runFetch(f *listFetch[T]) {
	ctx, stop := context.WithTimeout(h.session.lifetime, listFetchTimeout)
	defer stop()
	l := newPageCollector(h.kind, h.session.cfg.MaxTools)
	// This error stays if fetchPages panics: the deferred function then still ends the wait of the callers.
	f.err = &messages.Error{Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a bug was caught"}
	defer func() {
		h.mu.Lock()
		h.fetch = nil
		// A list that became old during its fetch still goes to the callers that asked before the change, but is not
		// kept.
		if f.err == nil && f.changes == h.changes {
			h.storeList(f, l.freshUntil)
		}
		if h.cached == &f.list {
			h.memoryTaken = l.memoryTaken
		} else { // only its callers have it, and they are not counted
			h.session.memory.release(l.memoryTaken)
		}
		h.mu.Unlock()
		close(f.done)
	}()
	f.err = l.fetchPages(ctx, h.session)
	f.list = Listing[T]{Items: l.entries, Quarantined: l.quarantined, Public: l.public}
}

// storeList caches a list if it is valid for any time. until is its freshness by the server's word, which counts in
// the modern era; the legacy era has ages of our own. The caller holds mu.
func (h *listCache[T]) storeList(f *listFetch[T], until time.Time) {
	s := h.session
	if s.modern.Load() == nil {
		_, tellsChanges := h.declared(&s.info.Load().Capabilities)
		switch {
		case !tellsChanges:
			until = time.Now().Add(maxAgeUnannounced)
		case s.overHTTP():
			until = time.Now().Add(maxAgeHTTP)
		default:
			until = time.Time{}
		}
	} else if !time.Now().Before(until) {
		return
	}
	h.cached, h.until = &f.list, until
}

// wasUsed reports whether a caller has asked for the list.
func (h *listCache[T]) wasUsed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used
}

// markChanged records that the list may have changed and drops the cached one.
//
// 2026-07-28, Caching: "When a relevant notification is received while a cached response is still fresh, the
// notification invalidates the cached response and it should be considered immediately stale."
func (h *listCache[T]) markChanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	h.dropCached()
}

// dropCached drops the cached list and its memory. The caller holds mu.
func (h *listCache[T]) dropCached() {
	h.session.memory.release(h.memoryTaken)
	h.cached, h.memoryTaken = nil, 0
}

// invalidReadError returns the error of a read that cannot be sent; it is not-sent.
func invalidReadError(text string) *messages.Error {
	return &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: text}
}
