package invariant

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// Hung is the ID of the verdict on a run that did not end by itself.
const Hung = history.Hung

// maxWaiters bounds the groups of waiting goroutines that the verdict names; the history has all of them.
const maxWaiters = 4

// hangVerdict returns the verdict on a run that hangs, false if the run ended.
func hangVerdict(h *history.History) (Verdict, bool) {
	for i := range h.Events {
		e := &h.Events[i]
		if e.Kind != history.Violation || e.Name != history.Hung {
			continue
		}
		v := Verdict{ID: Hung, Title: "the run comes to its end", Answer: Violated, Why: e.Text, Server: e.Server, At: e.T, Looked: 1,
			Evidence: []int{i}}
		at := slices.IndexFunc(h.Events, func(e history.Event) bool { return e.House != nil && e.Text == history.Hung })
		if at >= 0 {
			waiters := h.Events[at].House.Left
			v.Why += " Who waits for what: " + strings.Join(waiters[:min(len(waiters), maxWaiters)], " ")
			v.Evidence = []int{at, i}
		}
		return v, true
	}
	return Verdict{}, false
}
