package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// HungError says that a bubble does not come to its end, and why: a mutex that is never unlocked (a goroutine that waits for one keeps
// the time of a bubble from going on), or a loop without an end. Its goroutines are still there.
type HungError struct {
	// Cause is one sentence, Waits one for each group of goroutines that do the same: who waits for what.
	Cause string
	Waits []string
}

// Error implements error.
func (e *HungError) Error() string { return e.Cause + "\n" + strings.Join(e.Waits, "\n") }

// pulse is what the loop of a world tells of its progress.
type pulse struct {
	steps atomic.Uint64
	at    atomic.Int64            // virtual time
	turn  atomic.Pointer[mailbox] // the actor that was given the last turn
}

// watchdog looks at a bubble from outside, in real time. It costs a bubble nothing as long as its world goes on: the stacks of all
// goroutines are looked at only when nothing was done for a second.
//
// How long that takes in real time says little on a machine that is busy with other things. So that a world which is only starved
// is not taken for one that hangs, a mutex counts as held for ever only if no goroutine of the bubble can run, seen twice; and the
// patience with one that runs is counted in ticks, each of which is a turn that this process was really given.
type watchdog struct {
	pulse *pulse
	// maxStallTicks is how many ticks of 10 ms may pass in which the world does nothing; crawl how many seconds in which its time goes on by
	// less than one.
	maxStallTicks, maxCrawlSeconds int
	// onSlow, if not nil, is told once of a run that takes more than slowAfter: what it does, and who waits for what.
	onSlow func(string)

	stallTicks   int // ticks since the world did something
	crawlSeconds int // seconds since its time went on by one
	slowReported bool
	began        time.Time
	steps        uint64
	at           time.Duration
	lastWaits    []string // what the goroutines did at the look before
	busyCounts   map[string]int
	lookCount    int
}

const (
	calmInterval = time.Second
	tickInterval = 10 * time.Millisecond
	slowAfter    = 10 * time.Second
	// ticksPerLook is how many ticks lie between two looks at the stacks.
	ticksPerLook = 25
)

// awaitEnd returns what the bubble ends with, or that it does not. mark is how the runtime names the bubble.
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
			case err := <-ended: // it was about to end
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

// goroutinesIn are the goroutines of a bubble.
func goroutinesIn(mark string) []goroutine {
	return slices.DeleteFunc(parseDump(string(dumpStacks(true))), func(g goroutine) bool { return g.bubble != mark || mark == "" })
}

// checkProgress judges what the world has done since the last look.
func (d *watchdog) checkProgress(goroutines func() []goroutine) error {
	if d.onSlow != nil && !d.slowReported && time.Since(d.began) >= slowAfter {
		d.slowReported = true
		d.onSlow(d.describeProgress(goroutines()))
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

// describeBusy is the sentence that names what runs without an end.
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

// describeTurn says what the actor is about that was given the last turn and has not come back from it.
func (d *watchdog) describeTurn() string {
	if m := d.pulse.turn.Load(); m != nil {
		if h := m.current.Load(); h != nil {
			return fmt.Sprintf(". The actor %s has not come back from handling %s", h.actor, h)
		}
	}
	return ""
}

// describeProgress tells of a run that takes long.
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
