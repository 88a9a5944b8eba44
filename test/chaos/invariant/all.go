package invariant

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// All is every check, in the order of their numbers.
func All() []Check {
	return []Check{outcomes, generations, single, canaries, cleanHouse}
}

// Named finds a check by its ID.
func Named(id string) (Check, bool) {
	all := All()
	if i := slices.IndexFunc(all, func(c Check) bool { return c.ID == id }); i >= 0 {
		return all[i], true
	}
	return Check{}, false
}

// Judge asks every check that the scenario wants judged, and then whether what had to happen sometimes did. The verdicts
// are in the order of All.
func Judge(h *history.History) []Verdict {
	var out []Verdict
	wanted := h.Plan.Scenario.Invariants
	for _, c := range All() {
		if len(wanted) == 0 || slices.Contains(wanted, c.ID) {
			out = append(out, c.Judge(h))
		}
	}
	return out
}
