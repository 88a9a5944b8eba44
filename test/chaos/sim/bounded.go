package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxBoundedTicks is how many ticks of 10 ms what comes before or after a run may take: 60 s of turns that this process was really given.
// It takes well under a second.
const maxBoundedTicks = 6000

// RunBounded does f, which comes before or after a run: it makes its scenario, or judges its history. what says so, as in "the
// history is judged". slow, if not nil, is told once of more than 10 s. The error is a *HungError if f does not end: it goes on for
// as long as the process lives.
func RunBounded(what string, slow func(string), f func()) error {
	return waitBounded(what, slow, slowAfter, maxBoundedTicks, f)
}

func waitBounded(what string, slow func(string), after time.Duration, most int, f func()) error {
	ended := make(chan struct{})
	go attended(f, ended)
	began := time.Now()
	ticks := time.NewTicker(tickInterval)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-ended:
			return nil
		case <-ticks.C:
		}
		if slow != nil && time.Since(began) >= after {
			slow(what + ": " + strings.Join(describeBounded(), "\n"))
			slow = nil
		}
		if n >= most {
			return &HungError{Cause: fmt.Sprintf("%s, and that does not come to its end", what), Waits: describeBounded()}
		}
	}
}

func attended(f func(), ended chan<- struct{}) {
	defer close(ended)
	f()
}

// describeBounded says what the goroutines do that are attended, each as a sentence.
func describeBounded() (sentences []string) {
	for _, g := range parseDump(string(dumpStacks(true))) {
		if slices.ContainsFunc(g.frames, func(f frame) bool { return f.function == "test/chaos/sim.attended" }) {
			sentences = append(sentences, "It "+g.describeState()+".")
		}
	}
	return sentences
}
