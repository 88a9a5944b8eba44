// Command search runs random bad days in virtual time until one violates an invariant, shrinks the scenario, and prints a
// planted.SearchResult as one JSON object. Package planted builds it with all bugs and starts it with one chosen.
//
// The process runs on one processor, so that a seed gives the same day each time. A day that hangs cannot be canceled: the process
// prints the seed and ends, and package planted takes that as the result. The limits are of processor time, so that a busy machine
// finds what an idle one does.
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
	limit := flag.Duration("limit", 5*time.Minute, "how much processor time the days may take: no further one is begun then")
	hang := flag.Duration("hang", 30*time.Second, "how much processor time one seed may take")
	shrinking := flag.Duration("shrink", 20*time.Second, "how long the scenario that was found may be made smaller")
	flag.Parse()
	runtime.GOMAXPROCS(1) // one processor keeps the order of events of one instant, so that a seed gives the same run each time
	found, err := searchDays(*first, *seeds, strings.Split(*skip, ","), strings.Split(*want, ","), *limit, *hang, *shrinking)
	if err == nil {
		err = printResult(found)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

// printResult prints the result for the parent process.
func printResult(f planted.SearchResult) error { return json.NewEncoder(os.Stdout).Encode(f) }

// searchDays runs the seeds from first on until one violates an invariant, or the limit is over, and shrinks the scenario that was found.
// It returns an error only if a day cannot be run.
func searchDays(first uint64, seeds int, skip, want []string, limit, hang, shrinking time.Duration) (f planted.SearchResult, err error) {
	whole := startCounting()
	for seed := first; seed < first+uint64(seeds); seed++ {
		if whole.time() > limit {
			f.Cut = true
			return f, nil
		}
		f.Tried++
		if slices.Contains(skip, strconv.FormatUint(seed, 10)) {
			continue
		}
		// The watchdog runs on another goroutine, so it gets a copy that no later seed changes.
		hangResult := f
		hangResult.Hang = fmt.Sprintf("seed %d had not ended after %v", seed, hang)
		stopWatchdog := startCounting().after(hang, func() { // a hung day cannot be canceled: the process ends
			if printResult(hangResult) == nil {
				os.Exit(0)
			}
		})
		s := generate.Scenario(seed, generate.Options{})
		bad, err := runDay(context.Background(), s, seed)
		stopWatchdog()
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
		// Of several violations one that explains the bug is shown and guides the shrinking.
		shown := bad[0]
		if i := slices.IndexFunc(bad, func(v invariant.Verdict) bool { return slices.Contains(want, v.ID) }); i >= 0 {
			shown = bad[i]
		}
		f.Why = shown.ID + ": " + shown.Why
		startCounting().after(shrinking+hang, func() { // the bug is found even if the shrinking hangs
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

// shrinkScenario returns the smallest scenario found in the given time that still violates the same invariant, as YAML.
func shrinkScenario(s scenario.Scenario, seed uint64, wanted invariant.Verdict, most time.Duration) string {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	small, _ := shrink.Shrink(ctx, s, func(ctx context.Context, s scenario.Scenario) bool {
		verdicts, err := runDay(ctx, s, seed)
		return err == nil && slices.ContainsFunc(verdicts, func(v invariant.Verdict) bool { return v.ID == wanted.ID })
	}, shrink.Options{Server: wanted.Server, At: wanted.At})
	return string(small.YAML())
}

// runDay runs a scenario and returns the violated verdicts.
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
