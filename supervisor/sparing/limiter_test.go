package sparing

import (
	"fmt"
	"testing"
	"time"
)

func TestASubjectIsToldOfOnceAMinute(t *testing.T) {
	var s Limiter
	at := time.Unix(1000, 0)
	for i, c := range []struct {
		subject string
		after   time.Duration
		skipped int
		say     bool
	}{
		{"a", 0, 0, true}, {"a", time.Second, 0, false}, {"b", time.Second, 0, true}, {"a", 59 * time.Second, 0, false},
		{"a", time.Minute, 2, true}, {"a", time.Minute + time.Second, 0, false}, {"a", 2 * time.Minute, 1, true},
	} {
		if skipped, say := s.Allow(c.subject, at.Add(c.after)); skipped != c.skipped || say != c.say {
			t.Errorf("%d: %d, %v", i, skipped, say)
		}
	}
	for i := range 10 * maxSubjects {
		s.Allow(fmt.Sprint(i), at)
	}
	if len(s.bySubject) > maxSubjects {
		t.Errorf("%d subjects are remembered", len(s.bySubject))
	}
}
