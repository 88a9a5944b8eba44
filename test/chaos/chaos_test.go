package chaos_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/performer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapters/mcpgo"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

func TestMain(m *testing.M) {
	if performer.Main(os.Args[1:]) || servers.Main(os.Args[1:]) {
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "adapter" { // the client of TestProgramOfMcpGo
		_ = adapter.Serve(os.Stdin, os.Stdout, mcpgo.New())
		return
	}
	os.Exit(m.Run())
}

// badDay is a short bad day of two servers, one of which crashes.
func badDay() scenario.Scenario {
	return scenario.Scenario{
		Name: "one-crash", Seed: 7, Duration: messages.Duration(2e9),
		Servers:    []scenario.Group{{Name: "s", Count: 2}},
		Faults:     []scenario.Fault{{Fault: "crash", On: scenario.Selector{"s-000"}, At: messages.Duration(1e9)}},
		Load:       []scenario.Load{{Tool: "read", Rate: 20}},
		Invariants: []string{"I2", "I3", "I6"},
	}
}

func ExampleSimulate() {
	r, err := chaos.Simulate(context.Background(), badDay(), 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Answer())
	// Output: holds
}

// One scenario, both tiers, the same judges.
func TestBothTiersAreJudged(t *testing.T) {
	seeds.Shows(t, "004.nfr2.proven")
	for tier, run := range map[scenario.Tier]func(context.Context, scenario.Scenario, uint64) (*chaos.Result, error){
		scenario.Sim: chaos.Simulate, scenario.Real: chaos.Run,
	} {
		r, err := run(context.Background(), badDay(), 0)
		if err != nil {
			t.Errorf("%s: %v", tier, err)
			continue
		}
		if r.History.Plan.Tier != tier || r.History.Plan.Seed != 7 {
			t.Errorf("%s: planned for %s with seed %d", tier, r.History.Plan.Tier, r.History.Plan.Seed)
		}
		if r.Answer() != invariant.Holds || len(r.Violated()) > 0 {
			t.Errorf("%s: %s: %+v", tier, r.Answer(), r.Violated())
		}
	}
}

// failureRecorder is a test that is asked to fail.
type failureRecorder struct {
	testing.TB
	said []string
}

func (r *failureRecorder) Helper() {}

func (r *failureRecorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// A day on which what was to be tried did not happen has shown nothing, and Require says so; a day that passed is silent.
func TestRequire(t *testing.T) {
	silent := &failureRecorder{TB: t}
	chaos.Require(silent, badDay(), 1, 2)
	if len(silent.said) > 0 {
		t.Errorf("it complains of a day that passed: %q", silent.said)
	}
	never := badDay()
	never.Faults[0].Fault, never.Faults[0].At = "hang-call", messages.Duration(1999e6)
	never.Load = nil // no caller, so no call hangs
	loud := &failureRecorder{TB: t}
	chaos.Require(loud, never)
	if len(loud.said) != 1 || !strings.Contains(loud.said[0], "inconclusive") || !strings.Contains(loud.said[0], "seed 7") {
		t.Errorf("it says %q", loud.said)
	}
	invalid := badDay()
	invalid.Faults[0].Fault = "earthquake"
	loud = &failureRecorder{TB: t}
	chaos.Require(loud, invalid)
	if len(loud.said) != 1 || !strings.Contains(loud.said[0], "earthquake") {
		t.Errorf("it says %q", loud.said)
	}
}
