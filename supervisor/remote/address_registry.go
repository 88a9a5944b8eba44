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
	replaced bool                    // the address showed another certificate since
	watchers map[watchKey]*actor.PID // actors there that watch actors here
	watched  map[watchKey]struct{}   // actors there that actors here watch
}

// watchKey names an actor there and an actor here.
type watchKey struct{ remoteID, localID string }

// addressRegistry knows which address belongs to which identity, and what each side watches at the other. It is safe for concurrent
// use.
type addressRegistry struct {
	mu        sync.Mutex
	addresses map[string]*binding
	dialled   map[string]struct{} // identities of whom this side sent to
	// onUnbound is called, without the lock, when an address has no stream any more or belongs to another identity.
	onUnbound func(*binding)
}

func newAddressRegistry(onUnbound func(*binding)) *addressRegistry {
	return &addressRegistry{addresses: map[string]*binding{}, dialled: map[string]struct{}{}, onUnbound: onUnbound}
}

// ownerOf is the identity that an address showed; empty if none.
func (l *addressRegistry) ownerOf(address string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.addresses[address]; b != nil {
		return b.identity
	}
	return ""
}

// hasDialled reports whether this side has dialled an identity.
func (l *addressRegistry) hasDialled(identity string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.dialled[identity]
	return ok
}

// bindAddress notes that an address showed a certificate: at the other end of a stream that is open, or of one that this side is
// about to open. The newest proof counts: what the address was before is void.
func (l *addressRegistry) bindAddress(address, identity string, until time.Time, open bool) *binding {
	l.mu.Lock()
	b := l.addresses[address]
	var unbound *binding
	if b != nil && b.identity != identity {
		b.replaced, unbound, b = true, b, nil
	}
	if b == nil {
		b = &binding{address: address, identity: identity, watchers: map[watchKey]*actor.PID{}, watched: map[watchKey]struct{}{}}
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
	if unbound != nil {
		l.onUnbound(unbound)
	}
	return b
}

// openStream counts a stream to an address; nil if the address belongs to nobody.
func (l *addressRegistry) openStream(address string) *binding {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.addresses[address]
	if b != nil {
		b.streams++
		b.opening = false
	}
	return b
}

// closeStream is the end of a stream.
func (l *addressRegistry) closeStream(b *binding) {
	l.mu.Lock()
	b.streams--
	unbound := b.streams == 0 && !b.opening && l.addresses[b.address] == b
	if unbound {
		delete(l.addresses, b.address)
	}
	l.mu.Unlock()
	if unbound {
		l.onUnbound(b)
	}
}

// isValid reports whether what comes from there still counts.
func (l *addressRegistry) isValid(b *binding, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !b.replaced && now.Before(b.until)
}

// addWatcher notes that an actor there watches one here; false if there are too many.
func (l *addressRegistry) addWatcher(b *binding, w watchKey, watcher *actor.PID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := b.watchers[w]; !known && len(b.watchers) >= maxWatchers {
		return false
	}
	b.watchers[w] = watcher
	return true
}

// removeWatcher ends it; false if there was none.
func (l *addressRegistry) removeWatcher(b *binding, w watchKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := b.watchers[w]
	delete(b.watchers, w)
	return known
}

// watchers are the actors there that still watch, by whom.
func (l *addressRegistry) takeWatchers(b *binding) map[watchKey]*actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := b.watchers
	b.watchers = map[watchKey]*actor.PID{}
	return all
}

// addWatched notes that an actor here watches one there, and forget that it does no more.
func (l *addressRegistry) addWatched(b *binding, w watchKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.watched[w] = struct{}{}
}

// removeWatched reports whether the actor here watched the one there.
func (l *addressRegistry) removeWatched(b *binding, w watchKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := b.watched[w]
	delete(b.watched, w)
	return known
}

// clearWatched is for an address whose end the library tells itself.
func (l *addressRegistry) clearWatched(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.addresses[address]; b != nil {
		clear(b.watched)
	}
}
