// Package sparing bounds how often something is said: what a stranger causes as often as it likes is told once a minute.
package sparing

import (
	"sync"
	"time"
)

const (
	// Period is the time in which one subject is told of once.
	Period = time.Minute
	// maxSubjects bounds the subjects that are remembered.
	maxSubjects = 1024
)

// Remarks lets one remark about a subject through in each Period, and counts the others. Safe for concurrent use; the zero
// value is ready.
type Remarks struct {
	mu   sync.Mutex
	told map[string]*remark
}

type remark struct {
	at      time.Time
	skipped int
}

// Take reports whether something is to be said of the subject now, and how often it was not said since the last time.
func (s *Remarks) Take(subject string, now time.Time) (skipped int, say bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.told[subject]
	if r == nil {
		if len(s.told) >= maxSubjects { // a stranger may choose the subject: begin anew
			clear(s.told)
		}
		if s.told == nil {
			s.told = map[string]*remark{}
		}
		s.told[subject] = &remark{at: now}
		return 0, true
	}
	if now.Sub(r.at) < Period {
		r.skipped++
		return 0, false
	}
	skipped, r.at, r.skipped = r.skipped, now, 0
	return skipped, true
}
