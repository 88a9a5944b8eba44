package sim

import (
	"cmp"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/drills"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// playDrills plays the drills of a plan after its day, in a bubble of their own, and records what they find at the time at which the day ended.
// They know nothing of the day, and the day nothing of them, so that one with drills is otherwise the same as one without.
func playDrills(plan scenario.Plan, o Options, at time.Duration, rec *history.Recorder) {
	if n := plan.Scenario.Manager.Drills; n > 0 {
		recordDrills(o, at, rec, func(d drills.Options) {
			d.Seed, d.Count = plan.Seed, n
			drills.Play(d)
		})
	}
}

// recordDrills records what a play finds, and if it does not end.
func recordDrills(o Options, at time.Duration, rec *history.Recorder, play func(drills.Options)) {
	record := func(f drills.Finding) {
		// The event names no server: that of a drill is none of the day, of which the judges would want a status.
		rec.Add(history.Event{T: at, Side: history.Harness, Kind: history.Violation, Name: f.Invariant, Text: f.Text})
	}
	beat := &pulse{}
	dog := watchdog{pulse: beat, onSlow: o.OnSlow, maxStallTicks: cmp.Or(o.StallTicks, 500), maxCrawlSeconds: 60, memory: newMemoryGuard(1, 0)}
	// What is found after the watchdog has given up a drill that hangs is not recorded: its history has been handed out.
	var mu sync.Mutex
	over := false
	playing := ""
	err := runWatched(func() {
		play(drills.Options{
			Report: func(f drills.Finding) {
				mu.Lock()
				defer mu.Unlock()
				if !over {
					record(f)
				}
			},
			Progress: func(drill string) {
				mu.Lock()
				playing = drill
				mu.Unlock()
				beat.steps.Add(1)
			},
		})
	}, dog.awaitEnd)
	mu.Lock()
	defer mu.Unlock()
	over = true
	if err == nil {
		return
	}
	text := err.Error()
	if failed := (*BubbleError)(nil); errors.As(err, &failed) && failed.Panic == nil {
		text += ": " + strings.Join(describeWaits(parseDump(strings.Join(failed.Stacks, "\n\n"))), "; ")
	}
	record(drills.Finding{Invariant: "I9", Text: "the drill " + playing + " does not end: " + text})
}
