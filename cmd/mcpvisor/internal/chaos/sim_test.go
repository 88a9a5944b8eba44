package chaos

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestAReplayKeepsItsScenario checks that the report of a replay does not replace the folder in which its scenario lies.
func TestAReplayKeepsItsScenario(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := filepath.Join(chaosFolder, "seed-2")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	plan := scenario.Plan{Seed: 2, Scenario: scenario.Scenario{Name: "seed-2"}}
	for name, want := range map[string]string{
		"":                                  dir, // a random day
		"flapping":                          dir,
		"day.yaml":                          dir,
		filepath.Join(dir, "scenario.yaml"): dir + "-again",
		filepath.Join(".", dir, "s.yaml"):   dir + "-again",
		filepath.Join("none", "some.yaml"):  dir,
	} {
		s := simulation{name: name}
		if got := s.reportFolder(plan); got != want {
			t.Errorf("the report of %q goes to %q, want %q", name, got, want)
		}
	}
}

// TestTheFirstVerdictStays checks that a run of the report in which nothing was found does not take away the words of the run that failed.
func TestTheFirstVerdictStays(t *testing.T) {
	first := invariant.Verdict{ID: "I21", Answer: invariant.Violated, Why: "Call c1 was passed over."}
	second := invariant.Verdict{ID: "I21", Answer: invariant.Violated, Why: "Call c2 was passed over."}
	holds := invariant.Verdict{ID: "I21", Answer: invariant.Holds}
	other := invariant.Verdict{ID: "I3", Answer: invariant.Violated, Why: "Call c3 ran twice."}
	if v, notShown := reportedVerdict(first, []invariant.Verdict{other, second}); v.Why != second.Why || notShown {
		t.Errorf("the report shows it with other words: %q, %v", v.Why, notShown)
	}
	if v, notShown := reportedVerdict(first, []invariant.Verdict{other, holds}); v.Why != first.Why || !notShown {
		t.Errorf("the report does not show it: %q, %v", v.Why, notShown)
	}
}
