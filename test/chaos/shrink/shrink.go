// Package shrink makes a scenario that fails as small as it can be and still fail: fewer servers, faults, commands and
// calls, a shorter day, rounder times, fewer settings. What is left is what the failure needs.
//
//	s.Seed = seed // of the run that failed
//	small, stats := shrink.Shrink(ctx, s, func(ctx context.Context, s scenario.Scenario) bool {
//		return violates(ctx, s, "I3") // the same invariant, not just any
//	}, shrink.Options{})
//
// It is delta debugging over the parts of a scenario. The property testing library of this module (rapid) shrinks as well,
// but it shrinks the draws that its own generators made; a scenario that a person wrote, or that a file holds, was drawn by
// nobody. Shrinking the scenario itself serves both, and what comes out can be read.
//
// Guaranteed: what is returned fails, if what was given did; it is never larger, by Size; equal arguments give equal
// results, as long as the predicate answers equal scenarios equally; the predicate is never asked about a scenario that
// cannot be planned, nor twice about the same one.
//
// Not promised: the smallest scenario of all. What is returned is minimal in that no single part of it can go, if the tries
// were enough (Stats.Minimal).
package shrink

import (
	"context"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Options bound the search. The zero value is good for simulations.
type Options struct {
	// Tries is how often the predicate is asked at most; 1000. Each try is one run.
	Tries int
	// Tier is where the scenario fails; scenario.Sim.
	Tier scenario.Tier
	// Server and At are where and when the scenario fails, if that is known: what is about other servers, and what comes later, is left
	// away first.
	Server string
	At     time.Duration
	// Progress, if not nil, is told after each try how many there were, and the size of the smallest failing scenario so far.
	Progress func(tries int, smallest Size)
}

// Stats say what the search did.
type Stats struct {
	// Failed: the scenario that was given fails. If it does not, it is returned as it is.
	Failed bool
	// Tries is how often the predicate was asked, Kept how often a smaller scenario was found.
	Tries, Kept int
	From, To    Size
	// Minimal: the search came to its end. If not, the tries or the context ended before.
	Minimal bool
}

// Shrink returns the smallest scenario that it finds for which fails is true. The scenario must carry the seed with which it
// fails.
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

// search is one run of Shrink.
type search struct {
	ctx   context.Context
	fails func(context.Context, scenario.Scenario) bool
	o     Options
	// known are the answers of the predicate, by the scenario as JSON.
	known map[string]bool
	// best is the smallest scenario that is known to fail.
	best        scenario.Scenario
	size        Size
	tries, kept int
	stopped     bool
}

// runPasses goes from the large parts to the small ones, and begins again as long as something went.
func (x *search) runPasses() {
	x.cutDistant()
	x.shrinkAsWritten() // groups, counts and repetitions as they are written: much goes at once
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

// isOver says that no further try may be made.
func (x *search) isOver() bool {
	x.stopped = x.stopped || x.tries >= x.o.Tries || x.ctx.Err() != nil
	return x.stopped
}

// stillFails is the predicate's answer. After the last try it is false for whatever is not known.
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
	if x.ctx.Err() != nil { // an answer that was cut off says nothing
		return false
	}
	x.known[key] = answer
	if x.o.Progress != nil {
		x.o.Progress(x.tries, x.size)
	}
	return answer
}

// tryScenario keeps a candidate if it is smaller and fails.
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
