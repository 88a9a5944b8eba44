package subscriptions

import (
	"maps"
	"slices"
	"sync"
)

// MaxSubscriptions bounds the resources that one session watches.
const MaxSubscriptions = 1024

// Watches are the resources that a session watches. All methods are safe for concurrent use.
type Watches struct {
	// mu guards uris. It is taken before Streams.mu.
	mu sync.Mutex
	// uris maps each watched resource to the stream that carries its notifications; in the legacy era the values are
	// nil.
	uris map[string]*Stream
}

// Replace records that st watches uris and that uri is watched by nothing else, and stops the streams that st replaces. lost
// are those of uris that the server has not agreed to watch on st. st is nil in the legacy era, which has no streams, and if
// nothing is left to watch.
func (u *Watches) Replace(uri string, uris []string, st *Stream) (lost []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.removeStopped(uri)
	for _, one := range uris {
		u.removeStopped(one)
		if st != nil && !st.streams.honoursURI(st, one) {
			lost = append(lost, one)
			continue
		}
		if u.uris == nil {
			u.uris = make(map[string]*Stream)
		}
		u.uris[one] = st
	}
	return lost
}

// removeStopped forgets a resource and stops the stream that carried its notifications. The caller holds mu.
func (u *Watches) removeStopped(uri string) {
	if old := u.uris[uri]; old != nil {
		old.stop()
	}
	delete(u.uris, uri)
}

// RemoveLost forgets those of the resources of st that the server does not watch any more on it. If another stream has
// replaced st meanwhile, a resource stays.
func (u *Watches) RemoveLost(st *Stream) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, uri := range st.Filter.URIs {
		if u.uris[uri] == st && !st.streams.honoursURI(st, uri) {
			delete(u.uris, uri)
		}
	}
}

// Contains reports whether the session watches a resource.
func (u *Watches) Contains(uri string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.uris[uri]
	return ok
}

// URIList returns the resources that the session watches, sorted.
func (u *Watches) URIList() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.uris))
}
