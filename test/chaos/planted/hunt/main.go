// Command hunt runs random bad days in virtual time until one violates an invariant, makes the scenario small, and says what
// it found as one JSON object. It is built with a bug planted; see package planted.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/generate"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/shrink"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

func main() {
	first := flag.Uint64("seed", 1, "the first seed")
	seeds := flag.Int("seeds", 300, "how many seeds are tried")
	want := flag.String("want", "", "go on until one of these invariants is violated, separated by commas; empty: the first that is")
	shrinking := flag.Duration("shrink", 20*time.Second, "how long the scenario that was found may be made smaller")
	flag.Parse()
	runtime.GOMAXPROCS(1) // the order of what happens in one instant stays the same
	prey, err := hunt(*first, *seeds, *want, *shrinking)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(prey)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hunt:", err)
		os.Exit(1)
	}
}

func hunt(first uint64, seeds int, want string, shrinking time.Duration) (planted.Prey, error) {
	var prey planted.Prey
	for seed := first; seed < first+uint64(seeds); seed++ {
		prey.Tried++
		s := generate.Scenario(seed, generate.Options{})
		bad, err := judged(context.Background(), s, seed)
		if err != nil {
			return prey, fmt.Errorf("seed %d: %w", seed, err)
		}
		for _, v := range bad {
			if !slices.Contains(prey.Violated, v.ID) {
				prey.Violated = append(prey.Violated, v.ID)
			}
		}
		at := slices.IndexFunc(bad, func(v invariant.Verdict) bool {
			return want == "" || slices.Contains(strings.Split(want, ","), v.ID)
		})
		if at < 0 {
			continue
		}
		prey.Seed, prey.Before = seed, planted.SizeOf(s)
		bad = bad[at:]
		prey.Why = bad[0].ID + ": " + bad[0].Why
		ctx, cancel := context.WithTimeout(context.Background(), shrinking)
		defer cancel()
		small, _ := shrink.Shrink(ctx, s, func(ctx context.Context, s scenario.Scenario) bool {
			again, err := judged(ctx, s, seed)
			return err == nil && violates(again, bad[0].ID)
		}, shrink.Options{})
		prey.After, prey.Scenario = planted.SizeOf(small), string(small.YAML())
		return prey, nil
	}
	return prey, nil
}

// judged runs a scenario and gives what was violated.
func judged(ctx context.Context, s scenario.Scenario, seed uint64) ([]invariant.Verdict, error) {
	plan, err := s.Plan(seed, scenario.Sim)
	if err != nil {
		return nil, err
	}
	h, err := sim.Run(ctx, plan, sim.Options{})
	if err != nil {
		return nil, err
	}
	return violated(h), nil
}

func violated(h *history.History) (bad []invariant.Verdict) {
	for _, v := range invariant.Judge(h) {
		if v.Answer == invariant.Violated {
			bad = append(bad, v)
		}
	}
	return bad
}

func violates(verdicts []invariant.Verdict, id string) bool {
	for _, v := range verdicts {
		if v.ID == id {
			return true
		}
	}
	return false
}
