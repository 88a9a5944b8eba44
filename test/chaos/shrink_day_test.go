package chaos

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// aDay has three faults, of which one is enough.
func aDay() scenario.Scenario {
	day := scenario.Scenario{Name: "seed-1", Seed: 1, Duration: messages.Duration(time.Minute),
		Servers: []scenario.Group{{Name: "server"}}}
	for i := range 3 {
		day.Faults = append(day.Faults, scenario.Fault{Fault: "crash", At: messages.Duration(time.Duration(10+10*i) * time.Second)})
	}
	return day
}

var violatedC3 = []invariant.Verdict{{ID: "C3", Answer: invariant.Violated, Why: "sent twice"}}

// TestADayOfAClientThatVariesIsMadeSmaller: what was seen wrong once need not be seen in the next run of the same day.
func TestADayOfAClientThatVariesIsMadeSmaller(t *testing.T) {
	played := map[int]int{} // by the number of faults
	shown := map[*history.History]bool{}
	run := shrinkDay(t.Context(), aDay(), report.Run{History: &history.History{}, Verdicts: violatedC3, Took: time.Second},
		func(_ context.Context, day scenario.Scenario) (*history.History, []invariant.Verdict, error) {
			h := &history.History{}
			played[len(day.Faults)]++
			if len(day.Faults) == 3 && played[3] == 1 || len(day.Faults) == 0 || played[len(day.Faults)] > 1 {
				return h, nil, nil // in another run nothing is seen wrong
			}
			shown[h] = true
			return h, violatedC3, nil
		})
	if run.Found == nil || !shown[run.History] || report.Overall(run.Verdicts) != invariant.Violated {
		t.Errorf("the day was not made smaller, or the run is another: %+v, played %v", run, played)
	}
}

// TestADayIsMadeSmallerOnASlowMachine: a machine on which a run takes long gets the time for as many runs as any other.
func TestADayIsMadeSmallerOnASlowMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 10 * time.Second
		began := time.Now()
		run := shrinkDay(t.Context(), aDay(), report.Run{History: &history.History{}, Verdicts: violatedC3, Took: slow},
			func(ctx context.Context, day scenario.Scenario) (*history.History, []invariant.Verdict, error) {
				select {
				case <-time.After(slow):
				case <-ctx.Done():
					return nil, nil, ctx.Err()
				}
				if time.Since(began) <= shrinkTime || len(day.Faults) == 0 {
					return &history.History{}, nil, nil
				}
				return &history.History{}, violatedC3, nil
			})
		if run.Found == nil {
			t.Error("the day was not made smaller")
		}
		if took := time.Since(began); took > shrinkLongest+slow {
			t.Errorf("the search took %v, longer than %v", took, shrinkLongest)
		}
	})
}
