package session

import (
	"context"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// listFetchTimeout is how long a list may take that is fetched for whoever needs it.
	listFetchTimeout = 2 * time.Minute
	// maxAgeUnannounced is how long a list is valid whose server does not tell about changes; maxAgeHTTP, over HTTP in the legacy
	// era, how long one is valid at most.
	maxAgeUnannounced = 5 * time.Second
	maxAgeHTTP        = time.Minute
)

// listCache keeps one list of a session. All methods are safe for concurrent use.
//
//  1. At most one fetch is under way.
//  2. Nobody gets a list whose fetch began before the newest change that was told when they asked.
//  3. What is kept was fetched after the newest change, and is valid now.
type listCache[T any] struct {
	session *Session
	kind    *listKind[T]
	// declared says whether the server has the list, tellsChanges whether it announces changes.
	declared func(*Capabilities) (declared, tellsChanges bool)

	mu          sync.Mutex
	changes     uint64 // so many changes have been told
	used        bool   // somebody asked
	cached      *Listing[T]
	until       time.Time     // of kept; zero for until it changes
	memoryTaken int64         // of the session's memory, by kept
	fetch       *listFetch[T] // under way
}

// listFetch is one fetch of a list.
type listFetch[T any] struct {
	done    chan struct{} // closed when what follows is set
	changes uint64        // when it began
	list    Listing[T]
	err     *messages.Error
}

func (h *listCache[T]) init(s *Session, k *listKind[T], declared func(*Capabilities) (bool, bool)) {
	h.session, h.kind, h.declared = s, k, declared
}

// get is the list as it is now.
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
		case !current: // it began before the newest change: once more
		case f.err != nil:
			e := *f.err // whoever gets an error may complete it
			return Listing[T]{}, &e
		default:
			return f.list, nil
		}
	}
}

// findOrFetch is what is kept and valid, or the fetch that is under way, which begins now if none is. current says that it began
// after the newest change. Both are nil when the session is over.
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

// runFetch fetches the list. It belongs to the session, not to a caller.
func (h *listCache[T]) runFetch(f *listFetch[T]) {
	ctx, stop := context.WithTimeout(h.session.lifetime, listFetchTimeout)
	defer stop()
	l := newPageCollector(h.kind, h.session.cfg.MaxTools)
	f.err = &messages.Error{Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a bug was caught"}
	defer func() {
		h.mu.Lock()
		h.fetch = nil
		if f.err == nil && f.changes == h.changes {
			h.storeList(f, l.freshUntil)
		}
		if h.cached == &f.list {
			h.memoryTaken = l.memoryTaken
		} else { // it is its callers' alone
			h.session.memory.release(l.memoryTaken)
		}
		h.mu.Unlock()
		close(f.done)
	}()
	f.err = l.fetchPages(ctx, h.session)
	f.list = Listing[T]{Items: l.entries, Quarantined: l.quarantined, Public: l.public}
}

// storeList puts a list on the shelf if it is valid for any time. The caller holds mu.
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

// wasUsed reports whether anybody has asked for the list.
func (h *listCache[T]) wasUsed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used
}

// markChanged notes that the list may be another one now.
//
// 2026-07-28, Caching: "When a relevant notification is received while a cached response is still fresh, the notification
// invalidates the cached response and it should be considered immediately stale."
func (h *listCache[T]) markChanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	h.dropCached()
}

// dropCached drops what is kept. The caller holds mu.
func (h *listCache[T]) dropCached() {
	h.session.memory.release(h.memoryTaken)
	h.cached, h.memoryTaken = nil, 0
}

// invalidReadError is the error of something that cannot be asked.
func invalidReadError(text string) *messages.Error {
	return &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: text}
}
