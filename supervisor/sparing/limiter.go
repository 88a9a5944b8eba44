// Package sparing bounds how often one thing is logged: an event that a server can cause as often as it likes is reported once a
// minute, with the number of those in between. Package supervisor/internal/requests
// and the command up ask it before such a line.
//
// Guarantees: memory and lines are bounded, whatever subjects a server makes up. Not promised: that each event has its line; the next
// one that passes gives the number of those that were held back.
//
// Public for the command: what it exports may change without notice.
package sparing

import (
	"sync"
	"time"
)

const (
	// Period is the time in which one subject is reported once.
	Period = time.Minute
	// maxSubjects bounds the subjects that are remembered.
	maxSubjects = 1024
)

// Limiter lets one line about a subject pass in each Period, and counts the others. Safe for concurrent use; the zero
// value is ready.
type Limiter struct {
	mu        sync.Mutex
	bySubject map[string]*subjectState
}

// subjectState has the time at which a line last passed, and the number of those held back since.
type subjectState struct {
	lastAllowed time.Time
	skipped     int
}

// Allow reports whether a line about the subject may be written now, and how many were held back since the last one.
func (s *Limiter) Allow(subject string, now time.Time) (skipped int, say bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.bySubject[subject]
	if r == nil {
		// A server may choose the subject. All are forgotten then, which at worst lets a line pass early.
		if len(s.bySubject) >= maxSubjects {
			clear(s.bySubject)
		}
		if s.bySubject == nil {
			s.bySubject = map[string]*subjectState{}
		}
		s.bySubject[subject] = &subjectState{lastAllowed: now}
		return 0, true
	}
	// The count goes into the next line that passes.
	if now.Sub(r.lastAllowed) < Period {
		r.skipped++
		return 0, false
	}
	skipped, r.lastAllowed, r.skipped = r.skipped, now, 0
	return skipped, true
}
