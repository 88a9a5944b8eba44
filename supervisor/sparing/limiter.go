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

// Limiter lets one remark about a subject through in each Period, and counts the others. Safe for concurrent use; the zero
// value is ready.
type Limiter struct {
	mu        sync.Mutex
	bySubject map[string]*subjectState
}

type subjectState struct {
	lastAllowed time.Time
	skipped     int
}

// Allow reports whether something is to be said of the subject now, and how often it was not said since the last time.
func (s *Limiter) Allow(subject string, now time.Time) (skipped int, say bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.bySubject[subject]
	if r == nil {
		if len(s.bySubject) >= maxSubjects { // a stranger may choose the subject: begin anew
			clear(s.bySubject)
		}
		if s.bySubject == nil {
			s.bySubject = map[string]*subjectState{}
		}
		s.bySubject[subject] = &subjectState{lastAllowed: now}
		return 0, true
	}
	if now.Sub(r.lastAllowed) < Period {
		r.skipped++
		return 0, false
	}
	skipped, r.lastAllowed, r.skipped = r.skipped, now, 0
	return skipped, true
}
