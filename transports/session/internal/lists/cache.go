package lists

import (
	"context"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

const (
	// listFetchTimeout bounds one fetch of a list, whichever callers wait for it.
	listFetchTimeout = 2 * time.Minute
	// maxStaleFetches is how often a caller begins anew because the list has changed between its pages. A server may go on to change faster than it
	// can be asked.
	maxStaleFetches = 5
)

// A Conversation is what a cache needs of the session.
type Conversation interface {
	PageSource
	// Spawn runs f on a goroutine of the session, and reports false if the session is over; Lifetime ends with the session.
	Spawn(f func()) bool
	Lifetime() context.Context
	// EndedError returns the reason of the session's end, nil while it lives.
	EndedError(op string) *messages.Error
}

// A Cache keeps one list. All methods are safe for concurrent use.
//
//  1. At most one fetch is under way.
//  2. No caller gets a list whose fetch began before the newest change that the server had announced when the
//     caller asked.
//  3. A cached list was fetched after the newest change, and is valid now.
type Cache[T any] struct {
	kind         *Kind[T]
	conversation Conversation
	limits       Limits
	// validity returns until when a list is valid that was fetched just now and that the server calls fresh until then: the
	// zero time for until it changes. keep is false if it is valid for no time.
	validity func(fresh time.Time) (until time.Time, keep bool)

	// mu guards the fields below. Conversation.Spawn and the account of the memory are called while it is held.
	mu          sync.Mutex
	changes     uint64 // number of changes that the server has announced
	used        bool   // a caller has asked for the list
	cached      *Listing[T]
	until       time.Time // the end of cached's validity; zero: until it changes
	memoryTaken int64     // bytes that cached has reserved in Limits.Memory
	fetch       *fetch[T] // the one under way, nil if there is none
}

// A fetch is one fetch of a list. Its callers share it and read the result after done is closed.
type fetch[T any] struct {
	done    chan struct{} // closed when list and err are set
	changes uint64        // Cache.changes when the fetch began
	list    Listing[T]
	err     *messages.Error
}

// NewCache returns an empty cache. validity is called for each list that was fetched.
func NewCache[T any](
	k *Kind[T], c Conversation, limits Limits, validity func(fresh time.Time) (until time.Time, keep bool),
) *Cache[T] {
	return &Cache[T]{kind: k, conversation: c, limits: limits, validity: validity}
}

// Get returns the list as it is now: the cached one if it is valid, else that of a fetch. It waits for a fetch no
// longer than ctx lasts; the fetch itself goes on for the other callers.
func (h *Cache[T]) Get(ctx context.Context) (Listing[T], error) {
	if e := outcome.CallerLeftError(ctx); e != nil {
		e.Op = "read"
		return Listing[T]{}, e
	}
	// A fetch that began before a change is waited for as well, and its list is dropped: the next round begins or
	// finds a newer one.
	for stale := 0; ; {
		cached, f, current := h.findOrFetch()
		if cached != nil {
			return *cached, nil
		}
		if f == nil {
			return Listing[T]{}, outcome.MarkNotSent(h.conversation.EndedError("read"))
		}
		select {
		case <-f.done:
		case <-ctx.Done():
			e := outcome.ContextError(ctx, "before there was an answer")
			e.Op, e.Outcome = "read", messages.OutcomeUnknown
			return Listing[T]{}, e
		}
		switch {
		case !current: // the fetch began before the newest change, so its list may be the old one: once more
		case stale < maxStaleFetches && h.isStale(f):
			stale++
		case f.err != nil:
			e := *f.err // the fetch is shared, and a caller may complete its error
			return Listing[T]{}, &e
		default:
			return f.list, nil
		}
	}
}

// isStale reports whether the server has refused a cursor of a fetch that is over, because its list has changed since the page that gave it.
func (h *Cache[T]) isStale(f *fetch[T]) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return f.err != nil && f.err.Code == jsonrpc.CodeInvalidParams && f.changes != h.changes
}

// findOrFetch returns the cached list if it is valid, else the fetch that is under way, which it begins if there is
// none. current is true if the fetch began after the newest change. Both are nil when the session is over.
func (h *Cache[T]) findOrFetch() (cached *Listing[T], f *fetch[T], current bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = true
	if h.cached != nil && (h.until.IsZero() || time.Now().Before(h.until)) {
		return h.cached, nil, true
	}
	h.dropCached()
	if h.fetch == nil {
		f := &fetch[T]{done: make(chan struct{}), changes: h.changes}
		if !h.conversation.Spawn(func() { h.runFetch(f) }) {
			return nil, nil, false
		}
		h.fetch = f
	}
	return nil, h.fetch, h.fetch.changes == h.changes
}

// runFetch fetches the list. It belongs to the session and not to a caller, so the end of one caller's context does
// not take the list from the others.
func (h *Cache[T]) runFetch(f *fetch[T]) {
	ctx, stop := context.WithTimeout(h.conversation.Lifetime(), listFetchTimeout)
	defer stop()
	l := NewCollector(h.kind, h.limits)
	// This error stays if FetchPages panics: the deferred function then still ends the wait of the callers.
	f.err = &messages.Error{Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a bug was caught"}
	defer func() {
		h.mu.Lock()
		h.fetch = nil
		// A list that became old during its fetch still goes to the callers that asked before the change, but is not
		// kept.
		if f.err == nil && f.changes == h.changes {
			if until, keep := h.validity(l.freshUntil); keep {
				h.cached, h.until = &f.list, until
			}
		}
		if h.cached == &f.list {
			h.memoryTaken = l.MemoryTaken
		} else { // only its callers have it, and they are not counted
			h.limits.Memory.Release(l.MemoryTaken)
		}
		h.mu.Unlock()
		close(f.done)
	}()
	f.err = l.FetchPages(ctx, h.conversation)
	f.list = Listing[T]{Items: l.Entries, Quarantined: l.Quarantined, Public: l.Public}
}

// WasUsed reports whether a caller has asked for the list.
func (h *Cache[T]) WasUsed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used
}

// MarkChanged records that the list may have changed and drops the cached one.
//
// 2026-07-28, Caching: "When a relevant notification is received while a cached response is still fresh, the
// notification invalidates the cached response and it should be considered immediately stale."
func (h *Cache[T]) MarkChanged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	h.dropCached()
}

// dropCached drops the cached list and its memory. The caller holds mu.
func (h *Cache[T]) dropCached() {
	h.limits.Memory.Release(h.memoryTaken)
	h.cached, h.memoryTaken = nil, 0
}
