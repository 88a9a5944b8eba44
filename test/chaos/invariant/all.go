package invariant

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// All is every check: I1 to I22 in their order, then whether what can be asked to happen sometimes did.
func All() []Check {
	return append([]Check{
		liveCheck, outcomeCheck, onceCheck, lateSendCheck, generationCheck, singleConnCheck, retryDelayCheck, edgeCheck, boundedWorkCheck, canaryCheck, healCheck, cleanupCheck, probeCheck, listCheck, fairnessCheck,
		ownerCheck, releaseCheck, promptnessCheck, watcherCheck, readCheck, callQueueCheck, statusSays,
	}, occasionChecks...)
}

// Find finds a check by its ID.
func Find(id string) (Check, bool) {
	all := All()
	if i := slices.IndexFunc(all, func(c Check) bool { return c.ID == id }); i >= 0 {
		return all[i], true
	}
	return Check{}, false
}

// Judge asks the checks that the scenario wants judged (all invariants, if it names none), then those of the occasions that it says must
// happen, and for each of its faults whether it had an effect. The verdicts are in that order.
//
// Of a run that hangs there is one verdict, Hung: what the others ask about had no time to happen.
func Judge(h *history.History) []Verdict {
	if v, hangs := hangVerdict(h); hangs {
		return []Verdict{v}
	}
	var out []Verdict
	sc := &h.Plan.Scenario
	for _, c := range All() {
		occasion, sometimes := strings.CutPrefix(c.ID, "sometimes ")
		if sometimes && slices.Contains(sc.Sometimes, occasion) || !sometimes && (len(sc.Invariants) == 0 || slices.Contains(sc.Invariants, c.ID)) {
			out = append(out, c.Judge(h))
		}
	}
	for _, c := range faultChecks(h) {
		out = append(out, c.Judge(h))
	}
	return out
}
