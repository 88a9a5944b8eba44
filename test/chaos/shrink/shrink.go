// Package shrink makes a scenario that fails as small as possible while it still fails: fewer servers, faults, commands and
// calls, a shorter duration, rounder times, fewer settings. What is left is what the failure needs.
//
//	s.Seed = seed // of the run that failed
//	small, stats := shrink.Shrink(ctx, s, func(ctx context.Context, s scenario.Scenario) bool {
//		return violates(ctx, s, "I3") // the same invariant, not just any
//	}, shrink.Options{})
//
// # How it fits
//
// Package campaign calls [Shrink] with a predicate that runs each candidate in a worker; the command "mcpvisor chaos" prints
// the result. The search works on package scenario's values and plans each candidate before it asks the predicate.
//
// It is delta debugging over the parts of a scenario. The property testing library of this module (rapid) shrinks too, but only
// the draws that its own generators made; a scenario from a person or a file has none. Shrinking the scenario itself serves
// both, and people can read the result.
//
// # Guarantees
//
// Shrink returns a scenario that fails, if the given one did; it is never larger, by [Size]; equal arguments give equal
// results, as long as the predicate gives equal answers for equal scenarios; Shrink never asks the predicate about a scenario
// that cannot be planned, nor twice about the same one.
//
// # Not promised
//
// The result need not be the smallest scenario of all. It is minimal in that no single part can be removed, if the tries
// sufficed (Stats.Minimal).
package shrink

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Options bound the search. The zero value suits simulations.
type Options struct {
	// Tries bounds the number of calls of the predicate, each of which is one run. 0 means 1000.
	Tries int
	// Tier is the tier in which the scenario fails; empty means scenario.Sim.
	Tier scenario.Tier
	// Server and At say where and when the scenario fails, if that is known: the search first removes other servers and what
	// comes later.
	Server string
	At     time.Duration
	// Progress is called after each try with the number of tries and the size of the smallest failing scenario so far. nil
	// reports nothing.
	Progress func(tries int, smallest Size)
}

// Stats describes what the search did.
type Stats struct {
	// Failed is set if the given scenario fails. If it does not, Shrink returns it unchanged.
	Failed bool
	// Tries counts the calls of the predicate, Kept the smaller scenarios that it accepted.
	Tries, Kept int
	From, To    Size
	// Minimal is set if the search came to its end before the tries or the context did.
	Minimal bool
}

// Shrink returns the smallest scenario that it finds for which fails returns true. The scenario must carry the seed with which
// it fails.
func Shrink(ctx context.Context, s scenario.Scenario, fails func(context.Context, scenario.Scenario) bool, o Options) (
	scenario.Scenario, Stats,
) {
	if o.Tries <= 0 {
		o.Tries = 1000
	}
	if o.Tier == "" {
		o.Tier = scenario.Sim
	}
	x := &search{ctx: ctx, fails: fails, o: o, known: map[string]bool{}, best: s.Clone()}
	plan, err := s.Plan(0, o.Tier)
	if err != nil {
		return s, Stats{}
	}
	x.size = sizeOf(s, plan)
	stats := Stats{From: x.size, To: x.size}
	if !x.stillFails(s) {
		stats.Tries = x.tries
		return s, stats
	}
	x.runPasses()
	return x.best, Stats{
		Failed: true, Tries: x.tries, Kept: x.kept, From: stats.From, To: x.size, Minimal: !x.isOver(),
	}
}

// search is one run of Shrink. It runs in one goroutine.
type search struct {
	ctx   context.Context
	fails func(context.Context, scenario.Scenario) bool
	o     Options
	// known holds the answers of the predicate, by the scenario as JSON.
	known map[string]bool
	// best is the smallest scenario that is known to fail, size its size.
	best        scenario.Scenario
	size        Size
	tries, kept int
	// stopped is set once no further try may be made, and stays set.
	stopped bool
}

// runPasses goes from large parts to small ones, and repeats the passes as long as one of them removes something, because one
// removal often makes another possible.
func (x *search) runPasses() {
	x.cutDistant()
	// Whole groups, counts and repetitions go in few tries while they are still written as such.
	x.shrinkAsWritten()
	x.resolvePlan()
	for {
		before := x.kept
		x.reduceLists()
		x.shortenTimes()
		x.dropSettings()
		x.roundTimes()
		if x.kept == before || x.isOver() {
			return
		}
	}
}

// isOver reports whether no further try may be made.
func (x *search) isOver() bool {
	x.stopped = x.stopped || x.tries >= x.o.Tries || x.ctx.Err() != nil
	return x.stopped
}

// stillFails returns the predicate's answer. After the last try it returns false for scenarios whose answer is not known.
func (x *search) stillFails(s scenario.Scenario) bool {
	text, err := json.Marshal(s)
	if err != nil {
		return false
	}
	key := string(text)
	if answer, ok := x.known[key]; ok {
		return answer
	}
	if x.isOver() {
		return false
	}
	x.tries++
	answer := x.fails(x.ctx, s.Clone())
	// A run that ctx cut off says nothing about the scenario.
	if x.ctx.Err() != nil {
		return false
	}
	x.known[key] = answer
	if x.o.Progress != nil {
		x.o.Progress(x.tries, x.size)
	}
	return answer
}

// tryScenario keeps a candidate if it can be planned, is smaller and fails.
func (x *search) tryScenario(s scenario.Scenario) bool {
	plan, err := s.Plan(0, x.o.Tier)
	if err != nil {
		return false
	}
	size := sizeOf(s, plan)
	if !size.Less(x.size) || !x.stillFails(s) {
		return false
	}
	x.best, x.size, x.kept = s, size, x.kept+1
	return true
}
