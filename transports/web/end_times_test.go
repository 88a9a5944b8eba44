package web

import (
	"testing"
	"time"
)

// TestEnds: how many ends of which length it takes until Sends wait no more, and until they wait again.
func TestEnds(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		answer time.Duration // how long each takes
		after  []time.Duration
		worth  []bool // before the first, and after each
	}{
		"prompt":                {ms, []time.Duration{ms / 10, ms / 10, ms / 10, ms / 10}, []bool{true, true, true, true, true}},
		"a hiccup now and then": {ms, []time.Duration{20 * ms, 0, 20 * ms, 0, 0, 0, 0, 0}, []bool{true, true, true, true, true, true, true, true, true}},
		"open for good":         {ms, []time.Duration{20 * ms, 20 * ms, 20 * ms, 20 * ms}, []bool{true, true, true, false, false}},
		"open for good, slow":   {time.Minute, []time.Duration{100 * ms, 100 * ms, 100 * ms, 100 * ms}, []bool{true, true, true, false, false}},
		"prompt again":          {ms, []time.Duration{20 * ms, 20 * ms, 20 * ms, 0, 0, 0, 0}, []bool{true, true, true, false, false, false, true, true}},
		"a busy machine":        {60 * ms, []time.Duration{20 * ms, 60 * ms, 20 * ms}, []bool{true, true, true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var e streamEndTimes
			bound := endBound(c.answer)
			for i, want := range c.worth {
				if i > 0 {
					e.noteEnd(c.after[i-1])
				}
				if got := e.isWorthWaiting(bound); got != want {
					t.Errorf("after %v: worth waiting %v, and the usual end comes after %v", c.after[:i], got,
						time.Duration(e.average.Load()))
				}
			}
		})
	}
}
