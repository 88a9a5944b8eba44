package chaos

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/live"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// Result is one run and what it was found to be.
type Result struct {
	// History is everything that happened; History.Plan what was to happen.
	History *history.History
	// Verdicts are those of invariant.Judge.
	Verdicts []invariant.Verdict
	// Started and Took are by the clock of the wall, also for a run in virtual time.
	Started time.Time
	Took    time.Duration
}

// Answer is Violated if one verdict is, else Inconclusive if one is, else Holds.
func (r *Result) Answer() invariant.Answer { return report.Overall(r.Verdicts) }

// Violated are the verdicts that found something, in the order of their numbers.
func (r *Result) Violated() []invariant.Verdict {
	var out []invariant.Verdict
	for _, v := range r.Verdicts {
		if v.Answer == invariant.Violated {
			out = append(out, v)
		}
	}
	return out
}

// Report is the result for package report.
func (r *Result) Report() report.Run {
	return report.Run{History: r.History, Verdicts: r.Verdicts, Started: r.Started, Took: r.Took}
}

// Simulate runs a scenario in virtual time. seed 0 is the scenario's own. An error is a scenario that cannot be planned, the
// end of ctx, or a failure of the harness itself: what the manager does wrong is a verdict. It can be called concurrently,
// and inside a test; not inside a bubble of testing/synctest.
func Simulate(ctx context.Context, s scenario.Scenario, seed uint64) (*Result, error) {
	return runAndJudge(s, seed, scenario.Sim, func(p scenario.Plan) (*history.History, error) {
		return sim.Run(ctx, p, sim.Options{})
	})
}

// Run runs a scenario on real processes and sockets. The program that calls it becomes the misbehaving servers: its main, or
// its TestMain, begins with
//
//	if performer.Main(os.Args[1:]) {
//		return
//	}
//
// It counts what this process holds before and after, so that whatever else the program does meanwhile is in the count.
func Run(ctx context.Context, s scenario.Scenario, seed uint64) (*Result, error) {
	return runAndJudge(s, seed, scenario.Real, func(p scenario.Plan) (*history.History, error) {
		return live.Run(ctx, p, live.Options{})
	})
}

// runAndJudge plans a scenario for a tier, runs it and judges the history. An error means that the day could not be planned or run; a
// violation is none.
func runAndJudge(
	s scenario.Scenario, seed uint64, tier scenario.Tier, run func(scenario.Plan) (*history.History, error),
) (*Result, error) {
	plan, err := s.Plan(seed, tier)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	h, err := run(plan)
	if err != nil {
		return nil, err
	}
	return &Result{History: h, Verdicts: invariant.Judge(h), Started: started, Took: time.Since(started)}, nil
}

// Require simulates a scenario with each of the seeds and fails the test for one that is not passed: with what a terminal
// would show, and the seed. Without seeds it is the scenario's own.
func Require(t testing.TB, s scenario.Scenario, seeds ...uint64) {
	t.Helper()
	if len(seeds) == 0 {
		seeds = []uint64{0}
	}
	for _, seed := range seeds {
		r, err := Simulate(context.Background(), s, seed)
		if err != nil {
			t.Errorf("%s, seed %d: %v", s.Name, seed, err)
			continue
		}
		if r.Answer() == invariant.Holds {
			continue
		}
		var text strings.Builder
		report.Terminal(&text, r.Report(), false)
		t.Errorf("%s, seed %d: %s\n%s", s.Name, r.History.Plan.Seed, r.Answer(), text.String())
	}
}
