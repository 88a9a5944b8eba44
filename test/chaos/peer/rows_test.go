package peer

import (
	"maps"
	"slices"
	"testing"

	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// TestEachRowOfScenariosHasHooks: a row of the catalogue that claims a tier has hooks here, and hooks have such a row. That they
// have an effect, and which, TestEveryFault and the transcripts show.
func TestEachRowOfScenariosHasHooks(t *testing.T) {
	hooks := maps.Clone(behaviours())
	for _, k := range faults.Kinds() {
		if _, ok := hooks[k.Name]; ok != k.Where.Has(faults.Sim|faults.Real) {
			t.Errorf("%s has hooks: %v, and can be done at %b", k.Name, ok, k.Where)
		}
		delete(hooks, k.Name)
	}
	if len(hooks) > 0 {
		t.Errorf("there is no row for the hooks %v", slices.Sorted(maps.Keys(hooks)))
	}
}
