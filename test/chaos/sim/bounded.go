package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxBoundedTicks is the number of ticks of 10 ms that work before or after a run may take: 60 s in which this process had the
// processor. It usually takes well under a second.
const maxBoundedTicks = 6000

// RunBounded runs f, which prepares a run or judges its history. what describes it in the error, as in "the history is judged".
// slow is called once after 10 s; nil reports nothing. If f does not end, the error is a [*HungError], and f goes on for as
// long as the process lives.
func RunBounded(what string, slow func(string), f func()) error {
	return waitBounded(what, slow, slowAfter, maxBoundedTicks, f)
}

// waitBounded waits for f and counts ticks. A tick is counted only when this goroutine runs, so that a starved process is not
// taken for a hung one.
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

// attended runs f. describeBounded finds the goroutine by the name of this function in its stack.
func attended(f func(), ended chan<- struct{}) {
	defer close(ended)
	f()
}

// describeBounded says what the goroutines of attended functions do, each as a sentence.
func describeBounded() (sentences []string) {
	for _, g := range parseDump(string(dumpStacks(true))) {
		if slices.ContainsFunc(g.frames, func(f frame) bool { return f.function == "test/chaos/sim.attended" }) {
			sentences = append(sentences, "It "+g.describeState()+".")
		}
	}
	return sentences
}
