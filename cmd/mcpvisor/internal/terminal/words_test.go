package terminal

import (
	"testing"
	"time"
)

// TestShellWord checks which names are quoted for a shell.
func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{
		"a-b_c.d": "a-b_c.d", "two words": "'two words'", "it's": `'it'\''s'`, "$x": "'$x'",
	} {
		if got := ShellWord(s); got != want {
			t.Errorf("%q: %s, not %s", s, got, want)
		}
	}
}

// TestTimesForPeople checks ClockTime on the same day and another, and RelativeTime in both directions.
func TestTimesForPeople(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)
	if got := ClockTime(now.Add(time.Minute), now); got != "12:01:00" {
		t.Error(got)
	}
	if got := ClockTime(now.Add(-24*time.Hour), now); got != "2026-05-03 12:00:00" {
		t.Error(got)
	}
	if got := RelativeTime(now.Add(90*time.Second), now); got != "in 1m30s" {
		t.Error(got)
	}
	if got := RelativeTime(now.Add(-5*time.Second), now); got != "5s ago" {
		t.Error(got)
	}
}
