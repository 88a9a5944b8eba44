package proxy

import (
	"crypto/sha256"
	"sync"
)

// secretStore remembers the sessions and credentials that the server has seen, and those that it has forgotten by a fault. It
// keeps only SHA-256 digests, so that the proxy's memory holds no secrets.
type secretStore struct {
	mu     *sync.Mutex
	byKind map[secretKind]*digestSets
}

type secretKind string

const (
	sessions secretKind = "session"
	tokens   secretKind = "token"
)

// digestSets holds the digests of one kind: known to the server, or forgotten by it.
type digestSets struct{ known, forgotten map[[32]byte]struct{} }

// maxDigests bounds the known digests of each kind; further secrets are not remembered, and no fault can forget them.
const maxDigests = 1 << 16

func newSecretStore() secretStore {
	empty := func() *digestSets { return &digestSets{map[[32]byte]struct{}{}, map[[32]byte]struct{}{}} }
	return secretStore{&sync.Mutex{}, map[secretKind]*digestSets{sessions: empty(), tokens: empty()}}
}

// noteSecret notes a session or credential, and reports whether the server has forgotten it. An empty value is none.
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

// forgetSecrets makes the server forget every secret of a kind that it has seen so far.
func (f secretStore) forgetSecrets(k secretKind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.byKind[k]
	for d := range s.known {
		s.forgotten[d] = struct{}{}
	}
	clear(s.known)
}
