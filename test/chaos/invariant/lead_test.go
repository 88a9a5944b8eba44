package invariant_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// TestViolationsThatLead: a reader who looks for the cause is shown the earliest violation, and what was done wrong before what was told of it.
func TestViolationsThatLead(t *testing.T) {
	at := func(id string, at time.Duration) invariant.Verdict {
		return invariant.Verdict{ID: id, Answer: invariant.Violated, At: at}
	}
	for _, c := range []struct {
		name string
		all  []invariant.Verdict
		want string
	}{
		{"the earliest", []invariant.Verdict{at("I11", 2*time.Minute), at("I3", 5*time.Second)}, "I3"},
		{"a call that ran twice, and a watcher who was told of it a little before", []invariant.Verdict{at("I3", 9848*time.Millisecond), at("I19", 9847*time.Millisecond)}, "I3"},
		{"a watcher who was told wrong long before", []invariant.Verdict{at("I3", 9*time.Second), at("I19", 7*time.Second)}, "I19"},
		{"a run that hangs", []invariant.Verdict{at("I3", 0), at(invariant.Hung, time.Minute)}, invariant.Hung},
	} {
		if got := slices.MinFunc(c.all, invariant.CompareLeads); got.ID != c.want {
			t.Errorf("%s: %s leads, and %s should", c.name, got.ID, c.want)
		}
	}
}
