package invariant

import (
	"cmp"
	"slices"
	"time"
)

// toldChecks judge what watchers, readers and the status are told of what the manager does. A mistake in what it does shows in them as well.
var toldChecks = []string{"I19", "I20", "I22", "I29"}

// toldAfter is how much earlier a violation of toldChecks has to be than another one to come before it.
const toldAfter = time.Second

// CompareLeads orders violations for a reader who looks for the cause. A run that hangs comes first. Then the earliest comes first, because a
// later one often follows from it; but what was only told wrong comes after what was done wrong in the same second.
func CompareLeads(a, b Verdict) int {
	weight := func(v Verdict) time.Duration {
		switch {
		case v.ID == Hung:
			return -1
		case slices.Contains(toldChecks, v.ID):
			return v.At + toldAfter
		}
		return v.At
	}
	return cmp.Compare(weight(a), weight(b))
}
