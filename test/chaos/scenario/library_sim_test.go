package scenario_test

import (
	"slices"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// large are the scenarios that take longer than all others together.
var large = []string{"five-hundred", "thousand-servers-one-day"}

// Every scenario of the library passes in the simulation, and all that it is about happens: no verdict is inconclusive.
func TestTheLibraryPasses(t *testing.T) {
	seeds.Shows(t, "004.nfr2.proven")
	for _, s := range scenario.Library() {
		if len(s.Tiers) > 0 && !slices.Contains(s.Tiers, scenario.Sim) {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			if testing.Short() && slices.Contains(large, s.Name) {
				t.Skip("it takes longer than all others together")
			}
			plan, err := s.Plan(0, scenario.Sim)
			if err != nil {
				t.Fatal(err)
			}
			h, err := sim.Run(t.Context(), plan, sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range invariant.Judge(h) {
				if v.Answer != invariant.Holds {
					t.Errorf("%s %s: %s (%s at %v)", v.ID, v.Answer, v.Why, v.Server, v.At)
				}
			}
		})
	}
}
