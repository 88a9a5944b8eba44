package campaign

import (
	"context"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/shrink"
)

// Smaller looks for the smallest scenario that violates the check of that ID as the task does. It runs each try in a worker.
func Smaller(ctx context.Context, pool *Pool, t Task, id string, o shrink.Options) (scenario.Scenario, shrink.Stats) {
	s := t.Bad()
	s.Seed = t.Seed
	return shrink.Shrink(ctx, s, func(ctx context.Context, s scenario.Scenario) bool {
		return pool.Do(ctx, Task{Seed: s.Seed, Scenario: &s}).Breaks(id)
	}, o)
}
