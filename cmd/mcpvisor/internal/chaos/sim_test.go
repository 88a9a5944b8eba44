package chaos

import (
	"os"
	"path/filepath"
	"testing"

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
