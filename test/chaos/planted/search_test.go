package planted_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// quickBugs holds one bug each in the policy, in the catalog and on the path of a call, which days find, and testedBug one that the tests of
// its package find. The tests plant no other, because the compiler needs minutes for all of them; TestEveryBugCanBePlanted checks the types
// of all, and make planted searches for them.
var quickBugs = []string{"no-floor", "generation-stands", "untrusted-replayed"}

const testedBug = "one-too-many"

func TestRandomDaysFindBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the harness anew")
	}
	programs, err := quickPrograms()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range quickBugs {
		b := bugNamed(t, name)
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
	// A search whose time is over before its days says how many it has tried, and does not count as one that hangs.
	f, err := programs.Search(t.Context(), bugs.Bug{}, planted.Bounds{Seeds: 100_000, Limit: time.Second, Seed: time.Minute})
	if err != nil || !f.Cut || f.Tried == 0 || f.Hang != "" || f.Detected() {
		t.Errorf("100,000 days in a second: %+v, %v", f, err)
	}
}

// The test covers the path of a package's own tests: build, run without a bug, run with it.
func TestUnitTestsFindBugs(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the tests of a package anew")
	}
	programs, err := quickPrograms()
	if err != nil {
		t.Fatal(err)
	}
	b := bugNamed(t, testedBug)
	tested, err := programs.Test(t.Context(), b, time.Minute)
	if err != nil || tested.Failed == "" {
		t.Errorf("the tests of %s say %+v, %v", b.Package, tested, err)
	}
}

// quickPrograms builds the programs with these bugs, once for all tests.
var quickPrograms = sync.OnceValues(func() (*planted.Programs, error) {
	root, err := arch.Root()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return nil, err
	}
	tempDir = dir
	return planted.NewSource(root).Build(context.Background(), slices.DeleteFunc(slices.Clone(bugs.All), func(b bugs.Bug) bool {
		return !slices.Contains(quickBugs, b.Name) && b.Name != testedBug
	}), dir)
})

// tempDir holds the programs until all tests have run.
var tempDir string

func TestMain(m *testing.M) {
	code := m.Run()
	if tempDir != "" {
		_ = os.RemoveAll(tempDir)
	}
	os.Exit(code)
}

// bugNamed returns a bug of the table.
func bugNamed(t *testing.T, name string) bugs.Bug {
	t.Helper()
	i := slices.IndexFunc(bugs.All, func(b bugs.Bug) bool { return b.Name == name })
	if i < 0 {
		t.Fatalf("the table has no bug %s", name)
	}
	return bugs.All[i]
}
