package credentials

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// givenSecrets are the newest values that a server's requests carried, with their words. Callers may have credentials of
// their own, so that many values are new ones; nearly every request carries a known one, and then only the lock for readers is taken.
type givenSecrets struct {
	mu    sync.RWMutex
	known map[string]bool
	// newest is a ring of the same values, once mostSecrets are known: next is the oldest of them.
	newest []string
	next   int
}

const (
	// mostSecrets bounds the values that are remembered; a token that was replaced long ago is no longer worth hiding.
	mostSecrets = 2048
	// shortestSecret is the least length of a value that is removed from texts: shorter ones occur in harmless words.
	shortestSecret = 6
)

// note remembers a value that texts must not show. Of "Bearer abc", a server may repeat abc alone, so the words count too.
func (s *givenSecrets) note(value string) {
	s.mu.RLock()
	known := s.known[value]
	s.mu.RUnlock()
	if known || len(value) < shortestSecret {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]bool{}
	}
	s.add(value)
	for _, word := range strings.Fields(value) {
		if len(word) >= shortestSecret && !strings.EqualFold(word, "bearer") {
			s.add(word)
		}
	}
}

// add keeps one value in the place of the oldest. The caller holds mu.
func (s *givenSecrets) add(value string) {
	switch {
	case s.known[value]:
		return
	case len(s.newest) < mostSecrets:
		s.newest = append(s.newest, value)
	default:
		delete(s.known, s.newest[s.next])
		s.newest[s.next] = value
		s.next = (s.next + 1) % mostSecrets
	}
	s.known[value] = true
}

// all returns the values, the longest first: one may contain the other, and would be hidden only in part.
func (s *givenSecrets) all() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := slices.Clone(s.newest)
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	return all
}
