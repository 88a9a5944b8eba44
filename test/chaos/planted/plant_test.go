package planted_test

import (
	"slices"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/arch"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// A bug that does not compile, or whose place has changed, would look like one that neither random days nor unit tests find.
func TestEveryBugCanBePlanted(t *testing.T) {
	root, err := arch.Root()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, b := range bugs.All {
		if names[b.Name] {
			t.Errorf("two bugs are called %s", b.Name)
		}
		names[b.Name] = true
		if len(b.Finds) == 0 || b.Why == "" {
			t.Errorf("%s: which invariant explains it, and what does it cost?", b.Name)
		}
	}
	for name, why := range bugs.Unseen {
		if !names[name] || why == "" {
			t.Errorf("nothing is called %s, or it is not said why nobody finds it", name)
		}
	}
	if err := planted.NewSource(root).Compiles(bugs.All); err != nil {
		t.Error(err)
	}
}

// The table must hold a bug for each invariant that the product alone can break; otherwise that invariant's check is never
// proved to work.
func TestTheBugsCoverTheInvariants(t *testing.T) {
	var explained []string
	for _, b := range bugs.All {
		explained = append(explained, b.Finds...)
	}
	for _, id := range []string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I11", "I12", "I13", "I14"} {
		if !slices.Contains(explained, id) {
			t.Errorf("%s explains no planted bug", id)
		}
	}
}
