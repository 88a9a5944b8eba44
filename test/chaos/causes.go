package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
)

// fewFailures is how many failed cases a reader takes in without a list of their causes.
const fewFailures = 2

// A failedCase is a case of TestClient that failed: its name, and what was violated in it.
type failedCase struct {
	name     string
	violated []invariant.Verdict
}

// noteFailure keeps what was violated in a case.
func (s *settings) noteFailure(name string, all []invariant.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	violated := slices.DeleteFunc(slices.Clone(all), func(v invariant.Verdict) bool { return v.Answer != invariant.Violated })
	s.failed = append(s.failed, failedCase{name, violated})
}

// logCauses logs what the failed cases have in common, when more failed than a reader takes in one by one: one defect of a client mostly fails
// many cases.
func (s *settings) logCauses(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failed) > fewFailures {
		t.Log(causesText(s.failed))
	}
}

// causesText lists the invariants that were violated, that of most cases first, each with the first case as an example.
func causesText(failed []failedCase) string {
	slices.SortFunc(failed, func(a, b failedCase) int { return cmp.Compare(a.name, b.name) })
	type cause struct {
		id, title, first, why string
		cases                 int
	}
	causes := map[string]*cause{}
	for _, f := range failed {
		for _, v := range f.violated {
			c := causes[v.ID]
			if c == nil {
				c = &cause{id: v.ID, title: v.Title, first: f.name, why: v.Why}
				causes[v.ID] = c
			}
			c.cases++
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d cases failed. What was violated in them, the most frequent first; a case may violate several:", len(failed))
	for _, c := range slices.SortedFunc(maps.Values(causes), func(a, b *cause) int {
		return cmp.Or(cmp.Compare(b.cases, a.cases), cmp.Compare(a.id, b.id))
	}) {
		fmt.Fprintf(&text, "\n  %s, %s: in %d, such as %s: %s", c.id, c.title, c.cases, c.first, c.why)
	}
	return text.String()
}
