package remote

import (
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// A binding is an address that has shown the certificate of an identity.
type binding struct {
	address, identity string
	// until is the end of the certificate; later proofs with a newer certificate extend it.
	until time.Time

	// addressRegistry.mu guards the fields below.
	streams  int                     // open streams, in both directions
	opening  bool                    // the address has proved itself, and this side is about to open a stream
	replaced bool                    // the address has shown the certificate of another identity since: the binding is void
	watchers map[watchKey]*actor.PID // actors at the address that watch actors here, at most maxWatchers
	watched  map[watchKey]struct{}   // actors at the address that actors here watch
}

// A watchKey names an actor at the address and an actor here, by their ids.
type watchKey struct{ remoteID, localID string }

// addressRegistry records which identity an address belongs to, and which actors the two sides watch at each other.
// It is safe for concurrent use.
type addressRegistry struct {
	mu        sync.Mutex
	addresses map[string]*binding // by address: "host:port"
	dialled   map[string]struct{} // identities that this side has sent to; they may open streams to it
	ended     bool                // the actor that peers may name has ended: see endWatched
	// onUnbound is called, without the lock, when an address has no stream any more or belongs to another identity.
	onUnbound func(*binding)
}

// newAddressRegistry returns an empty registry.
func newAddressRegistry(onUnbound func(*binding)) *addressRegistry {
	return &addressRegistry{addresses: map[string]*binding{}, dialled: map[string]struct{}{}, onUnbound: onUnbound}
}

// ownerOf returns the identity that an address has shown; empty if there is none.
func (l *addressRegistry) ownerOf(address string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.addresses[address]; b != nil {
		return b.identity
	}
	return ""
}

// hasAddress reports whether an identity has an address, which may have a stream or be about to get one.
func (l *addressRegistry) hasAddress(identity string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.addresses {
		if b.identity == identity {
			return true
		}
	}
	return false
}

// hasDialled reports whether this side has dialled an identity.
func (l *addressRegistry) hasDialled(identity string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.dialled[identity]
	return ok
}

// bindAddress records that an address has shown a certificate: at the other end of an open stream, or of one that
// this side is about to open. The newest proof counts: a binding to another identity becomes void, and its watches
// end.
func (l *addressRegistry) bindAddress(address, identity string, until time.Time, open bool) *binding {
	l.mu.Lock()
	b := l.addresses[address]
	var unbound *binding
	// Another identity shows itself at the address: the old binding stays with its streams, but is void.
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
	// Outside of the lock, because onUnbound sends messages and calls the registry.
	if unbound != nil {
		l.onUnbound(unbound)
	}
	return b
}

// openStream counts a stream to an address; nil if the address belongs to no identity.
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

// closeStream counts the end of a stream. The last one removes the binding, unless another stream is about to open.
func (l *addressRegistry) closeStream(b *binding) {
	l.mu.Lock()
	b.streams--
	// A binding that was replaced is not in the map any more, and must not remove its successor.
	unbound := b.streams == 0 && !b.opening && l.addresses[b.address] == b
	if unbound {
		delete(l.addresses, b.address)
	}
	l.mu.Unlock()
	if unbound {
		l.onUnbound(b)
	}
}

// isValid reports whether messages from and to the address still count: no other identity has shown itself there, and
// the certificate has not ended at the time now.
func (l *addressRegistry) isValid(b *binding, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !b.replaced && now.Before(b.until)
}

// addWatcher records that an actor at the address watches one here; false if there are maxWatchers already.
func (l *addressRegistry) addWatcher(b *binding, w watchKey, watcher *actor.PID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := b.watchers[w]; !known && len(b.watchers) >= maxWatchers {
		return false
	}
	b.watchers[w] = watcher
	return true
}

// removeWatcher forgets a watch; false if there was none, so that a peer cannot end a watch that is not its own.
func (l *addressRegistry) removeWatcher(b *binding, w watchKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := b.watchers[w]
	delete(b.watchers, w)
	return known
}

// endWatched removes and returns all watchers, at every address. From now on hasEnded reports true.
func (l *addressRegistry) endWatched() (all []*actor.PID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	for _, b := range l.addresses {
		for key, watcher := range b.watchers {
			all = append(all, watcher)
			delete(b.watchers, key)
		}
	}
	return all
}

// hasEnded reports whether endWatched was called. A watcher that was added before and is not there any more has been returned by it.
func (l *addressRegistry) hasEnded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// takeWatchers removes and returns all watchers at the address: each of them must be unwatched here.
func (l *addressRegistry) takeWatchers(b *binding) map[watchKey]*actor.PID {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := b.watchers
	b.watchers = map[watchKey]*actor.PID{}
	return all
}

// addWatched records that an actor here watches one at the address.
func (l *addressRegistry) addWatched(b *binding, w watchKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b.watched[w] = struct{}{}
}

// removeWatched forgets such a watch and reports whether there was one: only then is the end of that actor believed.
func (l *addressRegistry) removeWatched(b *binding, w watchKey) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, known := b.watched[w]
	delete(b.watched, w)
	return known
}

// clearWatched forgets the watches of actors at an address after the library itself has reported their end.
func (l *addressRegistry) clearWatched(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.addresses[address]; b != nil {
		clear(b.watched)
	}
}
