// Package generate makes bad days at random: each seed is another scenario, the same each time.
//
//	s := generate.Scenario(42, generate.Options{})
package generate

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Options bound what is generated. The zero value is what the long runs of the simulation use.
type Options struct {
	// Servers is how many there are at most; 12.
	Servers int
	// Duration is how long things break; 0: 2 to 20 minutes, by the seed.
	Duration time.Duration
	// Faults is how many entries of faults there are at most; 12.
	Faults int
}

// Scenario is the bad day of a seed.
func Scenario(seed uint64, o Options) scenario.Scenario {
	r := scenario.Rand(seed, "generate")
	duration := cmp.Or(o.Duration, time.Duration(2+r.IntN(19))*time.Minute)
	s := scenario.Scenario{
		Name: fmt.Sprintf("seed-%d", seed), Seed: seed, Duration: messages.Duration(duration), Tiers: []scenario.Tier{scenario.Sim},
	}
	for i := range 1 + r.IntN(cmp.Or(o.Servers, 12)) {
		s.Servers = append(s.Servers, scenario.Group{Name: fmt.Sprintf("s%d", i+1), Kind: pick(r, scenario.Kinds)})
	}
	for range 1 + r.IntN(cmp.Or(o.Faults, 12)) {
		server := s.Servers[r.IntN(len(s.Servers))].Name
		s.Faults = append(s.Faults, scenario.Fault{
			Fault: pick(r, []string{"crash", "crash-loop", "hang-call"}), On: scenario.Selector{server},
			At: messages.Duration(r.Int64N(int64(duration))), For: messages.Duration(r.Int64N(int64(duration) / 4)),
		})
	}
	s.Load = []scenario.Load{{Tool: scenario.WriteTool, Rate: 0.2}, {Tool: scenario.ReadTool, Rate: 0.5}}
	return s
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }
