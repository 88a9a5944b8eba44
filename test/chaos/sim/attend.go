package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// attendFor is how many ticks of 10 ms what comes before or after a run may take: 60 s of turns that this process was really given.
// It takes well under a second.
const attendFor = 6000

// Attend does f, which comes before or after a run: it makes its scenario, or judges its history. what says so, as in "the
// history is judged". slow, if not nil, is told once of more than 10 s. The error is a *HungError if f does not end: it goes on for
// as long as the process lives.
func Attend(what string, slow func(string), f func()) error {
	return attend(what, slow, slowAfter, attendFor, f)
}

func attend(what string, slow func(string), after time.Duration, most int, f func()) error {
	ended := make(chan struct{})
	go attended(f, ended)
	began := time.Now()
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-ended:
			return nil
		case <-ticks.C:
		}
		if slow != nil && time.Since(began) >= after {
			slow(what + ": " + strings.Join(doing(), "\n"))
			slow = nil
		}
		if n >= most {
			return &HungError{Cause: fmt.Sprintf("%s, and that does not come to its end", what), Waits: doing()}
		}
	}
}

func attended(f func(), ended chan<- struct{}) {
	defer close(ended)
	f()
}

// doing says what the goroutines do that are attended, each as a sentence.
func doing() (all []string) {
	for _, g := range dumped(string(stack(true))) {
		if slices.ContainsFunc(g.frames, func(f frame) bool { return f.function == "test/chaos/sim.attended" }) {
			all = append(all, "It "+g.told()+".")
		}
	}
	return all
}
