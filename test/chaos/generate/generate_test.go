package generate_test

import (
	"reflect"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/generate"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func TestEverySeedCanBePlanned(t *testing.T) {
	for seed := range uint64(500) {
		s := generate.Scenario(seed, generate.Options{})
		if !reflect.DeepEqual(s, generate.Scenario(seed, generate.Options{})) {
			t.Fatalf("seed %d: two scenarios", seed)
		}
		if _, err := s.Plan(0, scenario.Sim); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
}
