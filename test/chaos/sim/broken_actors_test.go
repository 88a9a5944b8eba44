package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// TestBrokenActors runs a day in which actors of servers and the registry panic until the heal. Every server is connected afterwards, the
// catalog is right, nothing is left, and what is about a manager whose own code works is not judged.
func TestBrokenActors(t *testing.T) {
	p, err := scenario.Scenario{
		Name: "broken", Seed: 3, Duration: messages.Duration(6 * time.Minute), Servers: []scenario.Group{{Name: "a", Count: 2}},
		Manager: scenario.Manager{BrokenActors: true},
	}.Plan(3, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	h, err := sim.Run(t.Context(), p, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	broken := map[string]int{}
	for _, e := range h.Events {
		if e.Kind == history.FaultOn && e.Name == history.BrokenActor {
			broken[e.Server]++
		}
	}
	if broken["a-000"] == 0 || broken["a-001"] == 0 || broken[""] == 0 {
		t.Errorf("broken: %v", broken)
	}
	for _, v := range invariant.Judge(h) {
		judged := slices.Contains([]string{"I5", "I9", "I11", "I12", "I14"}, v.ID)
		switch {
		case judged && v.Answer != invariant.Holds, v.Answer == invariant.Violated:
			t.Errorf("%s: %s: %s", v.ID, v.Answer, v.Why)
		case v.ID == "I8" && v.Answer != invariant.Inconclusive:
			t.Errorf("I8 is judged: %+v", v)
		}
	}
}
