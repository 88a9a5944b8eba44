package campaign

import (
	"context"

	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/shrink"
)

// ShrinkTask looks for the smallest scenario that violates the check of v as the task does, and runs each try in a worker. It
// drops the description of a random scenario, and the occasions that it has to contain, because most of both will be gone.
func ShrinkTask(ctx context.Context, pool *Pool, t Task, v invariant.Verdict, o shrink.Options) (scenario.Scenario, shrink.Stats) {
	s := t.EffectiveScenario()
	s.Seed = t.Seed
	if t.Scenario == nil {
		s.About, s.Sometimes = "", nil
	}
	o.Server, o.At = v.Server, v.At
	only := v.ID
	if only == Crash {
		only = "" // a check may be what crashes
	}
	return shrink.Shrink(ctx, s, func(ctx context.Context, s scenario.Scenario) bool {
		return pool.Do(ctx, Task{Seed: s.Seed, Scenario: &s, Only: only}).Violates(v.ID)
	}, o)
}
