package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// boundedTicks is the number of ticks of 10 ms in which one step of the work before or after a run may take the processor: 5 s, as for a
// step of the run. For every itemsPerTick things that it is about it has a tick more.
const (
	boundedTicks = 500
	itemsPerTick = 50
)

// RunBounded runs f, which prepares a run or judges the history of one. what describes it in the error, as in "the history is judged", and
// items is the number of things that it is about. f calls step with the name of each part that it begins. slow is called once after 10 s;
// nil reports nothing. If a part does not end, or takes memory without an end, the error is a [*HungError], and f goes on for as long as
// the process lives.
func RunBounded(what string, items int, slow func(string), f func(step func(part string))) error {
	w := boundedWork{what: what, slow: slow, slowAfter: slowAfter, most: boundedTicks + items/itemsPerTick, memory: newMemoryGuard(0, items)}
	return w.run(f)
}

// boundedWork waits for work and counts ticks. A tick is counted only when its goroutine runs, so that a starved process is not taken for a
// hung one.
type boundedWork struct {
	what      string
	slow      func(string)
	slowAfter time.Duration
	// most is the number of ticks that a part may take.
	most   int
	memory memoryGuard

	part  string
	ticks int
	// seen is what the goroutine of f did at every look at the present part, with the calls that it was in each time.
	seen *goroutine
}

// run runs f, and returns nil when it ends.
func (w *boundedWork) run(f func(step func(part string))) error {
	ended := make(chan struct{})
	steps := make(chan string, 64)
	go attended(func() { f(func(part string) { steps <- part }) }, ended)
	began := time.Now()
	ticks := time.NewTicker(tickInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ended:
			return nil
		case w.part = <-steps:
			w.ticks, w.seen = 0, nil
			continue
		case <-ticks.C:
		}
		if w.slow != nil && time.Since(began) >= w.slowAfter {
			w.look()
			w.slow(w.describeWork() + ": " + strings.Join(w.describeSeen(), "\n"))
			w.slow = nil
		}
		if w.ticks++; w.ticks%ticksPerLook == 0 {
			w.look()
		}
		cause := w.describeWork()
		switch {
		case w.memory.isExceeded():
			cause += ", and that takes memory without an end: " + w.memory.describeGrowth()
		case w.ticks >= w.most:
			cause += ", and that does not come to its end"
		default:
			continue
		}
		w.look()
		select {
		case <-ended: // while it was looked at
			return nil
		default:
			return &HungError{Cause: cause, Waits: w.describeSeen()}
		}
	}
}

// attended runs f. look finds the goroutine by the name of this function in its stack.
func attended(f func(), ended chan<- struct{}) {
	defer close(ended)
	f()
}

// look looks at the stack of f. Of the calls only those stay that were there at every look: the innermost of them is the one that does not
// return, whatever it calls.
func (w *boundedWork) look() {
	for _, g := range parseDump(string(dumpStacks(true))) {
		if !slices.ContainsFunc(g.frames, func(f frame) bool { return f.function == "test/chaos/sim.attended" }) {
			continue
		}
		if w.seen != nil {
			g.frames = commonCalls(w.seen.frames, g.frames)
		}
		w.seen = &g
		return
	}
}

// commonCalls returns the outermost calls of a stack that an earlier one has, too, with the positions of the later one.
func commonCalls(before, now []frame) []frame {
	n := 0
	for n < min(len(before), len(now)) && before[len(before)-1-n].function == now[len(now)-1-n].function {
		n++
	}
	return now[len(now)-n:]
}

// describeWork says what is done.
func (w *boundedWork) describeWork() string {
	if w.part == "" {
		return w.what
	}
	return fmt.Sprintf("%s by %s", w.what, w.part)
}

// describeSeen says where f is, as a sentence.
func (w *boundedWork) describeSeen() []string {
	if w.seen == nil {
		return nil
	}
	return []string{"It " + w.seen.describeState() + "."}
}
