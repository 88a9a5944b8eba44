package planted_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// quick are bugs that few seeds find, one each in the policy, in the catalog and on the path of a call. NIGHTLY=1 hunts them all.
var quick = []string{"no-floor", "generation-stands", "untrusted-replayed"}

func TestBugsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the harness anew for each bug")
	}
	root, err := arch.Root()
	if err != nil {
		t.Fatal(err)
	}
	all := os.Getenv("NIGHTLY") != ""
	for _, b := range planted.Bugs {
		if !all && !slices.Contains(quick, b.Name) {
			continue
		}
		t.Run(b.Name, func(t *testing.T) {
			p, err := b.Hunt(t.Context(), root, t.TempDir(), planted.Bounds{Seeds: 300, Limit: 5 * time.Minute, Shrink: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if !b.Found(p) {
				t.Fatalf("not found: %d seeds violated %v; wanted one of %v. %s", p.Tried, p.Violated, b.Finds, p.Crash)
			}
			if _, err := scenario.Parse("found.yaml", []byte(p.Scenario)); err != nil {
				t.Errorf("what was found cannot be replayed: %v", err)
			}
		})
	}
}
