package generate_test

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/generate"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestDaysForClientsCanBePlanned: every seed gives a day with a fault, or nearly every.
func TestDaysForClientsCanBePlanned(t *testing.T) {
	quiet := 0
	for seed := range uint64(600) {
		for _, kind := range []messages.TransportKind{messages.Stdio, messages.HTTP} {
			for _, era := range []messages.Era{messages.EraLegacy, messages.EraModern} {
				s, calls := generate.Client(seed, kind, era)
				if _, err := s.Plan(0, scenario.Sim); err != nil || len(calls) != len(s.Servers) {
					t.Fatalf("seed %d, %s, %s: %v", seed, kind, era, err)
				}
				if len(s.Faults) == 0 {
					quiet++
				}
			}
		}
	}
	if quiet > 24 {
		t.Errorf("%d of 2400 days have no fault", quiet)
	}
}
