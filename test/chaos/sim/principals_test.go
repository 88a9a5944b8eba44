package sim_test

import (
	"flag"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

var principalSeeds = flag.Int("principal-seeds", 12, "how many days TestInstancesOfManyCallers tries")

// TestInstancesOfManyCallers: days in which several callers use servers with an instance for each, the owner commands them and they
// break, violate nothing that is promised of instances.
func TestInstancesOfManyCallers(t *testing.T) {
	for seed := range uint64(*principalSeeds) {
		s := scenario.Scenario{Name: "principals", Duration: messages.Duration(12 * time.Minute), Servers: []scenario.Group{{Name: "one"}},
			Manager: scenario.Manager{Principals: true}}
		plan, err := s.Plan(seed+1, scenario.Sim)
		if err != nil {
			t.Fatal(err)
		}
		h, err := sim.Run(t.Context(), plan, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range h.Events {
			if e.Kind == history.Violation {
				t.Errorf("seed %d: %s at %s: %s", seed+1, e.Name, e.T, e.Text)
				break
			}
		}
	}
}
