package proxy

import (
	"crypto/sha256"
	"sync"
)

// secretStore is what a server has been shown, as digests, and what it has forgotten of it.
type secretStore struct {
	mu     *sync.Mutex
	byKind map[secretKind]*digestSets
}

type secretKind string

const (
	sessions secretKind = "session"
	tokens   secretKind = "token"
)

type digestSets struct{ known, forgotten map[[32]byte]struct{} }

// maxDigests bounds what is remembered of either.
const maxDigests = 1 << 16

func newSecretStore() secretStore {
	empty := func() *digestSets { return &digestSets{map[[32]byte]struct{}{}, map[[32]byte]struct{}{}} }
	return secretStore{&sync.Mutex{}, map[secretKind]*digestSets{sessions: empty(), tokens: empty()}}
}

// noteSecret notes a session or a credential, and reports whether it was forgotten. An empty one is none.
func (f secretStore) noteSecret(k secretKind, value string) (forgotten bool) {
	if value == "" {
		return false
	}
	digest := sha256.Sum256([]byte(value))
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.byKind[k]
	if _, forgotten = s.forgotten[digest]; !forgotten && len(s.known) < maxDigests {
		s.known[digest] = struct{}{}
	}
	return forgotten
}

func (f secretStore) forgetSecrets(k secretKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.byKind[k]
	for d := range s.known {
		s.forgotten[d] = struct{}{}
	}
	clear(s.known)
}
