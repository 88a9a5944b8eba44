package proxy

import (
	"crypto/sha256"
	"sync"
)

// forgetful is what a server has been shown, as digests, and what it has forgotten of it.
type forgetful struct {
	mu *sync.Mutex
	of map[kindOf]*shown
}

type kindOf string

const (
	sessions kindOf = "session"
	tokens   kindOf = "token"
)

type shown struct{ known, gone map[[32]byte]struct{} }

// mostShown bounds what is remembered of either.
const mostShown = 1 << 16

func newForgetful() forgetful {
	empty := func() *shown { return &shown{map[[32]byte]struct{}{}, map[[32]byte]struct{}{}} }
	return forgetful{&sync.Mutex{}, map[kindOf]*shown{sessions: empty(), tokens: empty()}}
}

// show notes a session or a credential, and reports whether it was forgotten. An empty one is none.
func (f forgetful) show(k kindOf, value string) (gone bool) {
	if value == "" {
		return false
	}
	digest := sha256.Sum256([]byte(value))
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.of[k]
	if _, gone = s.gone[digest]; !gone && len(s.known) < mostShown {
		s.known[digest] = struct{}{}
	}
	return gone
}

func (f forgetful) forget(k kindOf) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.of[k]
	for d := range s.known {
		s.gone[d] = struct{}{}
	}
	clear(s.known)
}
