package session

import (
	"context"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// listBound is how long a list may take that is fetched for whoever needs it.
	listBound = 2 * time.Minute
	// freshUntold is how long a list is valid whose server does not tell about changes; freshHTTP, over HTTP in the legacy
	// era, how long one is valid at most.
	freshUntold = 5 * time.Second
	freshHTTP   = time.Minute
)

// shelf keeps one list of a session. All methods are safe for concurrent use.
//
//  1. At most one fetch is under way.
//  2. Nobody gets a list whose fetch began before the newest change that was told when they asked.
//  3. What is kept was fetched after the newest change, and is valid now.
type shelf[T any] struct {
	session *Session
	kind    *listKind[T]
	// declared says whether the server has the list, told whether it tells about changes.
	declared func(*Capabilities) (declared, told bool)

	mu      sync.Mutex
	changes uint64 // so many changes have been told
	used    bool   // somebody asked
	kept    *Listing[T]
	until   time.Time // of kept; zero for until it changes
	taken   int64     // of the session's memory, by kept
	fetch   *fetch[T] // under way
}

// fetch is one fetch of a list.
type fetch[T any] struct {
	done    chan struct{} // closed when what follows is set
	changes uint64        // when it began
	list    Listing[T]
	err     *messages.Error
}

func (h *shelf[T]) init(s *Session, k *listKind[T], declared func(*Capabilities) (bool, bool)) {
	h.session, h.kind, h.declared = s, k, declared
}

// get is the list as it is now.
func (h *shelf[T]) get(ctx context.Context) (Listing[T], error) {
	s := h.session
	if e := s.ended("read"); e != nil {
		return Listing[T]{}, notSent(e)
	}
	info := s.info.Load()
	if info == nil {
		return Listing[T]{}, notRead("the " + h.kind.many + " were asked for before the handshake")
	}
	if declared, _ := h.declared(&info.Capabilities); !declared {
		return Listing[T]{Public: true}, nil
	}
	if e := tooLate(ctx); e != nil {
		e.Op = "read"
		return Listing[T]{}, e
	}
	for {
		kept, f, current := h.look()
		if kept != nil {
			return *kept, nil
		}
		if f == nil {
			return Listing[T]{}, notSent(s.ended("read"))
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

// look is what is kept and valid, or the fetch that is under way, which begins now if none is. current says that it began
// after the newest change. Both are nil when the session is over.
func (h *shelf[T]) look() (kept *Listing[T], f *fetch[T], current bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.used = true
	if h.kept != nil && (h.until.IsZero() || time.Now().Before(h.until)) {
		return h.kept, nil, true
	}
	h.forget()
	if h.fetch == nil {
		f := &fetch[T]{done: make(chan struct{}), changes: h.changes}
		if !h.session.spawn(func() { h.run(f) }) {
			return nil, nil, false
		}
		h.fetch = f
	}
	return nil, h.fetch, h.fetch.changes == h.changes
}

// run fetches the list. It belongs to the session, not to a caller.
func (h *shelf[T]) run(f *fetch[T]) {
	ctx, stop := context.WithTimeout(h.session.life, listBound)
	defer stop()
	l := newListing(h.kind, h.session.cfg.MaxTools)
	f.err = &messages.Error{Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic, Text: "a bug was caught"}
	defer func() {
		h.mu.Lock()
		h.fetch = nil
		if f.err == nil && f.changes == h.changes {
			h.keep(f, l.until)
		}
		if h.kept == &f.list {
			h.taken = l.taken
		} else { // it is its callers' alone
			h.session.memory.give(l.taken)
		}
		h.mu.Unlock()
		close(f.done)
	}()
	f.err = l.fetch(ctx, h.session)
	f.list = Listing[T]{Items: l.entries, Quarantined: l.quarantined, Public: l.public}
}

// keep puts a list on the shelf if it is valid for any time. The caller holds mu.
func (h *shelf[T]) keep(f *fetch[T], until time.Time) {
	s := h.session
	if s.modern.Load() == nil {
		_, told := h.declared(&s.info.Load().Capabilities)
		switch {
		case !told:
			until = time.Now().Add(freshUntold)
		case s.overHTTP():
			until = time.Now().Add(freshHTTP)
		default:
			until = time.Time{}
		}
	} else if !time.Now().Before(until) {
		return
	}
	h.kept, h.until = &f.list, until
}

// wasUsed reports whether anybody has asked for the list.
func (h *shelf[T]) wasUsed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.used
}

// change notes that the list may be another one now.
//
// 2026-07-28, Caching: "When a relevant notification is received while a cached response is still fresh, the notification
// invalidates the cached response and it should be considered immediately stale."
func (h *shelf[T]) change() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	h.forget()
}

// forget drops what is kept. The caller holds mu.
func (h *shelf[T]) forget() {
	h.session.memory.give(h.taken)
	h.kept, h.taken = nil, 0
}

// notRead is the error of something that cannot be asked.
func notRead(text string) *messages.Error {
	return &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: text}
}
