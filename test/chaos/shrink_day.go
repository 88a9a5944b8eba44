package chaos

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/shrink"
)

const (
	// shrinkTries bounds the search for a smaller day, and so does shrinkTime, or the time of shrinkLeast runs of the day if the
	// machine is so slow that these take longer, but not longer than shrinkLongest.
	shrinkTries   = 200
	shrinkLeast   = 40
	shrinkTime    = 15 * time.Second
	shrinkLongest = 2 * time.Minute
)

// playFunc plays a day and judges it.
type playFunc func(context.Context, scenario.Scenario) (*history.History, []invariant.Verdict, error)

// shrinkDay returns the run of the smallest day that it finds in which the same is seen wrong. A day that hangs is not tried again.
//
// A client need not do the same in two runs of one day. So what has been seen once counts: run is that of the day itself, which is not
// played again, and the run that is returned is the one in which the smaller day was seen to fail.
func shrinkDay(ctx context.Context, day scenario.Scenario, run report.Run, play playFunc) report.Run {
	bad := slices.DeleteFunc(slices.Clone(run.Verdicts), func(v invariant.Verdict) bool { return v.Answer != invariant.Violated })
	if len(bad) == 0 {
		return run
	}
	first := slices.MinFunc(bad, invariant.CompareLeads).ID
	if first == history.Hung {
		return run
	}
	ctx, cancel := context.WithTimeout(ctx, min(max(shrinkTime, shrinkLeast*run.Took), shrinkLongest))
	defer cancel()
	// seen are the runs that failed, the newest last; the search keeps the day of each at once, or never.
	type failedRun struct {
		day      scenario.Scenario
		history  *history.History
		verdicts []invariant.Verdict
	}
	seen := []failedRun{{day, run.History, run.Verdicts}}
	violated := func(ctx context.Context, smaller scenario.Scenario) bool {
		if reflect.DeepEqual(smaller, day) {
			return true
		}
		h, verdicts, err := play(ctx, smaller)
		if err != nil {
			return false
		}
		for _, v := range verdicts {
			if v.ID == first && v.Answer == invariant.Violated {
				// The one before is that of the kept day if ctx ends before this one is kept.
				seen = append(seen[len(seen)-1:], failedRun{smaller, h, verdicts})
				return true
			}
		}
		return false
	}
	small, stats := shrink.Shrink(ctx, day, violated, shrink.Options{Tries: shrinkTries})
	if stats.Kept == 0 {
		return run
	}
	// The search may return to an older day; that one is played again.
	i := slices.IndexFunc(seen, func(f failedRun) bool { return reflect.DeepEqual(f.day, small) })
	if i < 0 {
		h, verdicts, err := play(context.WithoutCancel(ctx), small)
		if err != nil || report.Overall(violatedOf(verdicts)) != invariant.Violated {
			return run
		}
		seen, i = []failedRun{{small, h, verdicts}}, 0
	}
	return report.Run{History: seen[i].history, Verdicts: seen[i].verdicts, Started: run.Started, Took: run.Took, Command: run.Command, Lead: first,
		Found: &report.Found{Scenario: day, Command: run.Command}}
}
