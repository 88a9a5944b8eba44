// Command search runs random bad days in virtual time until one violates an invariant, makes the scenario small, and says what
// it found as one JSON object. It is built with bugs planted; see package planted.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/campaign"
	"github.com/mcpvisor/mcpvisor/test/chaos/generate"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/planted"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/shrink"
)

func main() {
	first := flag.Uint64("seed", 1, "the first seed")
	seeds := flag.Int("seeds", 200, "how many seeds are tried")
	skip := flag.String("skip", "", "seeds that are left out, separated by commas")
	want := flag.String("want", "", "the invariants whose word is preferred, separated by commas")
	hang := flag.Duration("hang", 30*time.Second, "how long one seed may take")
	shrinking := flag.Duration("shrink", 20*time.Second, "how long the scenario that was found may be made smaller")
	flag.Parse()
	runtime.GOMAXPROCS(1) // the order of what happens in one instant stays the same
	found, err := searchDays(*first, *seeds, strings.Split(*skip, ","), strings.Split(*want, ","), *hang, *shrinking)
	if err == nil {
		err = printResult(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

func printResult(f planted.SearchResult) error { return json.NewEncoder(os.Stdout).Encode(f) }

func searchDays(first uint64, seeds int, skip, want []string, hang, shrinking time.Duration) (f planted.SearchResult, err error) {
	for seed := first; seed < first+uint64(seeds); seed++ {
		f.Tried++
		if slices.Contains(skip, strconv.FormatUint(seed, 10)) {
			continue
		}
		hangResult := f
		hangResult.Hang = fmt.Sprintf("seed %d had not ended after %v", seed, hang)
		watchdog := time.AfterFunc(hang, func() { // it cannot be ended otherwise
			if printResult(hangResult) == nil {
				os.Exit(0)
			}
		})
		s := generate.Scenario(seed, generate.Options{})
		bad, err := runDay(context.Background(), s, seed)
		watchdog.Stop()
		if err != nil {
			return f, fmt.Errorf("seed %d: %w", seed, err)
		}
		if len(bad) == 0 {
			continue
		}
		f.Seed = seed
		for _, v := range bad {
			f.Violated = append(f.Violated, v.ID)
		}
		f.Violated = slices.Compact(slices.Sorted(slices.Values(f.Violated)))
		shown := bad[0]
		if i := slices.IndexFunc(bad, func(v invariant.Verdict) bool { return slices.Contains(want, v.ID) }); i >= 0 {
			shown = bad[i]
		}
		f.Why = shown.ID + ": " + shown.Why
		time.AfterFunc(shrinking+hang, func() { // found it is, however long its scenario
			if printResult(f) == nil {
				os.Exit(0)
			}
		})
		if shrinking <= 0 {
			return f, nil
		}
		small := shrinkScenario(s, seed, shown, shrinking)
		f.Scenario = small
		f.Lines = strings.Count(strings.TrimSpace(small), "\n") + 1
		return f, nil
	}
	return f, nil
}

func shrinkScenario(s scenario.Scenario, seed uint64, wanted invariant.Verdict, most time.Duration) string {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	small, _ := shrink.Shrink(ctx, s, func(ctx context.Context, s scenario.Scenario) bool {
		verdicts, err := runDay(ctx, s, seed)
		return err == nil && slices.ContainsFunc(verdicts, func(v invariant.Verdict) bool { return v.ID == wanted.ID })
	}, shrink.Options{Server: wanted.Server, At: wanted.At})
	return string(small.YAML())
}

// runDay runs a scenario and gives what was violated.
func runDay(ctx context.Context, s scenario.Scenario, seed uint64) (bad []invariant.Verdict, err error) {
	r := campaign.Do(ctx, campaign.Task{Seed: seed, Scenario: &s}, nil)
	if r.Error != "" {
		return nil, errors.New(r.Error)
	}
	for _, v := range r.Verdicts {
		if v.Answer == invariant.Violated {
			bad = append(bad, v)
		}
	}
	return bad, nil
}
