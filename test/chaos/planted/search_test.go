package planted_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// quickBugs holds one bug each in the policy, in the catalog and on the path of a call. The test plants no other, because the
// compiler needs minutes for all of them; TestEveryBugCanBePlanted checks the types of all, and make planted searches for them.
var quickBugs = []string{"no-floor", "generation-stands", "untrusted-replayed"}

func TestRandomDaysFindBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the harness anew")
	}
	root, err := arch.Root()
	if err != nil {
		t.Fatal(err)
	}
	quick := slices.DeleteFunc(slices.Clone(bugs.All), func(b bugs.Bug) bool { return !slices.Contains(quickBugs, b.Name) })
	if len(quick) != len(quickBugs) {
		t.Fatalf("of %v the table has %d", quickBugs, len(quick))
	}
	programs, err := planted.NewSource(root).Build(t.Context(), quick, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range quick {
		t.Run(b.Name, func(t *testing.T) {
			f, err := programs.Search(t.Context(), b,
				planted.Bounds{Seeds: 300, Limit: 5 * time.Minute, Seed: time.Minute, Shrink: 3 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if !b.ExplainedBy(f.Violated) {
				t.Fatalf("not found: %d days violated %v; wanted one of %v. %s%s", f.Tried, f.Violated, b.Finds, f.Crash, f.Hang)
			}
			// A scenario that cannot be parsed would be worthless to the engineer who wants to replay it.
			if _, err := scenario.Parse("found.yaml", []byte(f.Scenario)); err != nil {
				t.Errorf("what was found cannot be replayed: %v", err)
			}
		})
	}
}

// The test covers the path of a package's own tests: build, run without a bug, run with it.
func TestUnitTestsFindBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the tests of a package anew")
	}
	root, err := arch.Root()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(bugs.All, func(b bugs.Bug) bool { return b.Name == "one-too-many" })
	programs, err := planted.NewSource(root).Build(t.Context(), bugs.All, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tested, err := programs.Test(t.Context(), bugs.All[i], time.Minute)
	if err != nil || tested.Failed == "" {
		t.Errorf("the tests of %s say %+v, %v", bugs.All[i].Package, tested, err)
	}
}
