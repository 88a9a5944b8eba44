package remote

import (
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// binding is an address that showed the certificate of an identity.
type binding struct {
	address, identity string
	// until is when the certificate ends.
	until time.Time

	// What follows is the ledger's.
	streams  int                     // open ones, in both directions
	opening  bool                    // a stream follows the proof
	void     bool                    // the address showed another certificate since
	watchers map[watching]*actor.PID // actors there that watch actors here
	watched  map[watching]struct{}   // actors there that actors here watch
}

// watching names an actor there and an actor here.
type watching struct{ there, here string }

// ledger knows which address belongs to which identity, and what each side watches at the other. It is safe for concurrent
// use.
type ledger struct {
	mu        sync.Mutex
	addresses map[string]*binding
	dialled   map[string]struct{} // identities of whom this side sent to
	// left is called, without the lock, when an address has no stream any more or belongs to another identity.
	left func(*binding)
}

func newLedger(left func(*binding)) *ledger {
	return &ledger{addresses: map[string]*binding{}, dialled: map[string]struct{}{}, left: left}
}

// owner is the identity that an address showed; empty if none.
func (l *ledger) owner(address string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.addresses[address]; b != nil {
		return b.identity
	}
	return ""
}

// sentTo reports whether this side has dialled an identity.
func (l *ledger) sentTo(identity string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.dialled[identity]
	return ok
}

// bind notes that an address showed a certificate: at the other end of a stream that is open, or of one that this side is
// about to open. The newest proof counts: what the address was before is void.
func (l *ledger) bind(address, identity string, until time.Time, open bool) *binding {
	l.mu.Lock()
	b := l.addresses[address]
	var gone *binding
	if b != nil && b.identity != identity {
		b.void, gone, b = true, b, nil
	}
	if b == nil {
		b = &binding{address: address, identity: identity, watchers: map[watching]*actor.PID{}, watched: map[watching]struct{}{}}
		l.addresses[address] = b
	}
	if until.After(b.until) {
		b.until = until
	}
	if open {
		b.streams++
	} else {
		b.opening = true
		l.dialled[identity] = struct{}{}
	}
	l.mu.Unlock()
	if gone != nil {
		l.left(gone)
	}
	return b
}

// open counts a stream to an address; nil if the address belongs to nobody.
func (l *ledger) open(address string) *binding {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.addresses[address]
	if b != nil {
		b.streams++
		b.opening = false
	}
	return b
}

// close is the end of a stream.
func (l *ledger) close(b *binding) {
	l.mu.Lock()
	b.streams--
	gone := b.streams == 0 && !b.opening && l.addresses[b.address] == b
	if gone {
		delete(l.addresses, b.address)
	}
	l.mu.Unlock()
	if gone {
		l.left(b)
	}
}

// valid reports whether what comes from there still counts.
func (l *ledger) valid(b *binding, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !b.void && now.Before(b.until)
}

// watch notes that an actor there watches one here; false if there are too many.
func (l *ledger) watch(b *binding, w watching, who *actor.PID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := b.watchers[w]; !known && len(b.watchers) >= maxWatchers {
		return false
	}
	b.watchers[w] = who
	return true
}

// unwatch ends it; false if there was none.
func (l *ledger) unwatch(b *binding, w watching) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := b.watchers[w]
	delete(b.watchers, w)
	return known
}

// watchers are the actors there that still watch, by whom.
func (l *ledger) watchersOf(b *binding) map[watching]*actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := b.watchers
	b.watchers = map[watching]*actor.PID{}
	return all
}

// follow notes that an actor here watches one there, and forget that it does no more.
func (l *ledger) follow(b *binding, w watching) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.watched[w] = struct{}{}
}

// forget reports whether the actor here watched the one there.
func (l *ledger) forget(b *binding, w watching) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := b.watched[w]
	delete(b.watched, w)
	return known
}

// forgetAll is for an address whose end the library tells itself.
func (l *ledger) forgetAll(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.addresses[address]; b != nil {
		clear(b.watched)
	}
}
