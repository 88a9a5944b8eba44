package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// HungError says that a bubble does not end, and why: a mutex that is never unlocked (a goroutine that waits for one stops the
// time of its bubble), an endless loop, or memory that is taken without an end. Its goroutines still exist.
type HungError struct {
	// Cause is one sentence. Waits has one for each group of goroutines that do the same.
	Cause string
	Waits []string
}

// Error implements error.
func (e *HungError) Error() string {
	return strings.TrimSuffix(e.Cause, ".") + ".\n" + strings.Join(e.Waits, "\n")
}

// pulse is the progress of a run, which the loop writes and the watchdog reads.
// steps counts the rounds of the loop.
type pulse struct {
	steps atomic.Uint64
	// at is the virtual time in nanoseconds.
	at atomic.Int64
	// turn is the actor that got the last turn.
	turn atomic.Pointer[mailbox]
}

// watchdog watches a bubble from outside, in real time. It costs little while the run makes progress: it takes the stacks of
// all goroutines only when nothing was done for a second.
//
// Real time says little on a machine that is busy with other things. So that a starved run is not taken for a hung one, a mutex
// counts as held for ever only if no goroutine of the bubble can run, seen twice; and the patience with a running goroutine is
// counted in ticks, in each of which this process had the processor.
type watchdog struct {
	pulse *pulse
	// maxStallTicks is the number of ticks of 10 ms without a step of the run, maxCrawlSeconds the number of real seconds in
	// which its virtual time advances by less than one, after which the run counts as hung.
	maxStallTicks, maxCrawlSeconds int
	memory                         memoryGuard
	// onSlow is called once for a run that takes more than slowAfter; nil reports nothing.
	onSlow func(string)

	// stallTicks counts ticks since the last step, crawlSeconds checks since the virtual time advanced by a second.
	stallTicks   int
	crawlSeconds int
	slowReported bool
	began        time.Time
	// steps and at are those of the check before.
	steps uint64
	at    time.Duration
	// lastWaits describes the goroutines at the look before. busyCounts counts, by function, how often a goroutine was seen
	// running or waiting outside of the bubble, in lookCount looks.
	lastWaits  []string
	busyCounts map[string]int
	lookCount  int
}

// calmInterval is the time between two checks of a run that makes progress, tickInterval of one that does not.
const (
	calmInterval = time.Second
	tickInterval = 10 * time.Millisecond
	slowAfter    = 10 * time.Second
	// ticksPerLook is the number of ticks between two looks at the stacks.
	ticksPerLook = 25
)

// awaitEnd returns the error with which the bubble ends, or a HungError if it does not. mark returns the runtime's name of the
// bubble.
func (d *watchdog) awaitEnd(ended <-chan error, mark func() string) error {
	d.began = time.Now()
	timer := time.NewTimer(calmInterval)
	defer timer.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-timer.C:
		}
		if hung := d.checkProgress(func() []goroutine { return goroutinesIn(mark()) }); hung != nil {
			select {
			// The bubble ended while the stacks were taken.
			case err := <-ended:
				return err
			default:
				return hung
			}
		}
		if d.stallTicks > 0 {
			timer.Reset(tickInterval)
		} else {
			timer.Reset(calmInterval)
		}
	}
}

// goroutinesIn returns the goroutines of a bubble, none if its name is unknown.
func goroutinesIn(mark string) []goroutine {
	return slices.DeleteFunc(parseDump(string(dumpStacks(true))), func(g goroutine) bool { return g.bubble != mark || mark == "" })
}

// checkProgress compares the progress with that of the last check, and returns a HungError once the patience has ended.
func (d *watchdog) checkProgress(goroutines func() []goroutine) error {
	if d.onSlow != nil && !d.slowReported && time.Since(d.began) >= slowAfter {
		d.slowReported = true
		d.onSlow(d.describeProgress(goroutines()))
	}
	if d.memory.isExceeded() {
		in := goroutines()
		return &HungError{Cause: "It takes memory without an end: " + d.memory.describeGrowth() + d.describeTurn(), Waits: describeWaits(in)}
	}
	steps, at := d.pulse.steps.Load(), time.Duration(d.pulse.at.Load())
	if steps != d.steps {
		if d.crawlSeconds++; at >= d.at+time.Second {
			d.crawlSeconds, d.at = 0, at
		}
		d.steps, d.stallTicks, d.lastWaits, d.busyCounts, d.lookCount = steps, 0, nil, nil, 0
		if d.crawlSeconds > d.maxCrawlSeconds {
			in := goroutines()
			return &HungError{Cause: fmt.Sprintf("Its time crawls: in %d s of real time, %d things were done and less than a second went by"+
				" at %s", d.crawlSeconds, steps, at), Waits: describeWaits(in)}
		}
		return nil
	}
	if d.stallTicks++; d.stallTicks%ticksPerLook != 1 && d.stallTicks < d.maxStallTicks {
		return nil
	}
	// No step since the last check: the stacks show whether a goroutine can still go on.
	in := goroutines()
	d.lookCount++
	if isStandstill(in) {
		now := describeWaits(in)
		if d.lastWaits != nil && slices.Equal(now, d.lastWaits) {
			return &HungError{Cause: describeStandstill(in) + d.describeTurn(), Waits: now}
		}
		d.lastWaits = now
		return nil
	}
	d.lastWaits = nil
	if d.busyCounts == nil {
		d.busyCounts = map[string]int{}
	}
	for _, g := range in {
		if f := g.moduleFrames(1); g.canProceed() && len(f) > 0 {
			d.busyCounts[map[bool]string{true: "runs", false: "waits"}[g.isRunning()]+" "+f[0].function]++
		}
	}
	if d.stallTicks < d.maxStallTicks {
		return nil
	}
	return &HungError{Cause: d.describeBusy() + d.describeTurn(), Waits: describeWaits(in)}
}

// describeBusy names the function that was seen running, or waiting outside of the bubble, most often.
func (d *watchdog) describeBusy() string {
	most, where := 0, ""
	for f, n := range d.busyCounts {
		if n > most || n == most && f < where {
			most, where = n, f
		}
	}
	does, where, _ := strings.Cut(where, " ")
	switch does {
	case "runs":
		return fmt.Sprintf("%s runs without an end: it was running at %d of %d looks, and nothing else went on", where, most, d.lookCount)
	case "waits":
		return where + " waits for something outside of the simulation, whose time stands still meanwhile"
	}
	return "Something runs without an end, outside of this module"
}

// describeTurn names the actor that got the last turn and still handles its message, empty if it has finished.
func (d *watchdog) describeTurn() string {
	if m := d.pulse.turn.Load(); m != nil {
		if h := m.current.Load(); h != nil {
			return fmt.Sprintf(". The actor %s has not come back from handling %s", h.actor, h)
		}
	}
	return ""
}

// describeProgress describes a slow run: its progress, and its largest groups of goroutines.
func (d *watchdog) describeProgress(in []goroutine) string {
	text := fmt.Sprintf("%d things were done, and its own time is %s", d.pulse.steps.Load(),
		time.Duration(d.pulse.at.Load()).Round(time.Millisecond))
	all := describeWaits(in)
	for i, w := range all {
		if i == 5 {
			return text + fmt.Sprintf("\n  and %d other groups", len(all)-i)
		}
		text += "\n  " + w
	}
	return text
}
