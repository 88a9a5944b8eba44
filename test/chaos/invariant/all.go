package invariant

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// All returns every check: I1 to I29 in their order, then the occasions that a scenario can require.
func All() []Check {
	return append([]Check{
		liveCheck, outcomeCheck, onceCheck, lateSendCheck, generationCheck, singleConnCheck, retryDelayCheck, edgeCheck, boundedWorkCheck, canaryCheck, healCheck, cleanupCheck, probeCheck, listCheck, fairnessCheck,
		ownerCheck, releaseCheck, promptnessCheck, watcherCheck, readCheck, callQueueCheck, statusSays, sentCheck,
		apartCheck, answeredCheck, viewCheck, wireCheck, leftCheck, bookkeepingCheck,
	}, occasionChecks...)
}

// Find returns the check with an ID, false if there is none.
func Find(id string) (Check, bool) {
	all := All()
	if i := slices.IndexFunc(all, func(c Check) bool { return c.ID == id }); i >= 0 {
		return all[i], true
	}
	return Check{}, false
}

// judgeBroken are the invariants that hold whatever the manager's own code does: generations, bounded work, secrets, that every server is
// connected in the end, a clean house, and the servers' true lists.
var judgeBroken = []string{"I5", "I9", "I10", "I11", "I12", "I14"}

// Judge runs the checks that the scenario asks for (all invariants, if it names none), then those of the occasions that it
// requires, and for each of its faults whether it had an effect. The verdicts are in that order.
//
// For a run that hangs there is only the verdict Hung, because what the other checks judge had no time to happen.
func Judge(h *history.History) []Verdict { return JudgeInSteps(h, func(string) {}) }

// JudgeInSteps is Judge, and calls begin with the ID of each check before it runs.
func JudgeInSteps(h *history.History, begin func(id string)) []Verdict {
	return judgeBy(h, func(string) bool { return true }, begin)
}

// JudgeOnly is JudgeInSteps for one check alone. The search for a smaller run asks many times about the same check, and all of them together
// take longer than the run itself. For a run that hangs there is only the verdict Hung.
func JudgeOnly(h *history.History, id string, begin func(id string)) []Verdict {
	return judgeBy(h, func(other string) bool { return other == id }, begin)
}

// judgeBy runs the checks whose IDs are chosen.
func judgeBy(h *history.History, chosen func(id string) bool, begin func(id string)) []Verdict {
	if v, hangs := hangVerdict(h); hangs {
		return []Verdict{v}
	}
	var out []Verdict
	sc := &h.Plan.Scenario
	for _, c := range All() {
		if !chosen(c.ID) {
			continue
		}
		occasion, sometimes := strings.CutPrefix(c.ID, "sometimes ")
		if sometimes && slices.Contains(sc.Sometimes, occasion) || !sometimes && (len(sc.Invariants) == 0 || slices.Contains(sc.Invariants, c.ID)) {
			if sc.Manager.BrokenActors && !sometimes && !slices.Contains(judgeBroken, c.ID) {
				out = append(out, Verdict{ID: c.ID, Title: c.Title, Answer: Inconclusive,
					Why: "Actors of the manager were made to panic, and this invariant is about a manager whose own code works."})
				continue
			}
			begin(c.ID)
			out = append(out, c.Judge(h))
		}
	}
	for _, c := range faultChecks(h) {
		if !chosen(c.ID) {
			continue
		}
		begin(c.ID)
		out = append(out, c.Judge(h))
	}
	return out
}
