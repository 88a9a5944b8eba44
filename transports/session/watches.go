package session

import (
	"maps"
	"slices"
	"sync"
)

// maxSubscriptions bounds the resources that one session watches.
const maxSubscriptions = 1024

// watches are the resources that a session watches. All methods are safe for concurrent use.
type watches struct {
	// mu guards uris. It is taken before subscriptionStreams.mu.
	mu sync.Mutex
	// uris maps each watched resource to the stream that carries its notifications; in the legacy era the values are
	// nil.
	uris map[string]*subscriptionStream
}

// replace records that st watches uris and that uri is watched by nothing else, and stops the streams that st replaces. lost
// are those of uris that the server has not agreed to watch on st. st is nil in the legacy era, which has no streams, and if
// nothing is left to watch.
func (u *watches) replace(uri string, uris []string, st *subscriptionStream) (lost []string) {
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
			u.uris = make(map[string]*subscriptionStream)
		}
		u.uris[one] = st
	}
	return lost
}

// removeStopped forgets a resource and stops the stream that carried its notifications. The caller holds mu.
func (u *watches) removeStopped(uri string) {
	if old := u.uris[uri]; old != nil {
		old.stop()
	}
	delete(u.uris, uri)
}

// removeLost forgets those of the resources of st that the server does not watch any more on it. If another stream has
// replaced st meanwhile, a resource stays.
func (u *watches) removeLost(st *subscriptionStream) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, uri := range st.filter.uris {
		if u.uris[uri] == st && !st.streams.honoursURI(st, uri) {
			delete(u.uris, uri)
		}
	}
}

// contains reports whether the session watches a resource.
func (u *watches) contains(uri string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, ok := u.uris[uri]
	return ok
}

// uriList returns the resources that the session watches, sorted.
func (u *watches) uriList() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.uris))
}
