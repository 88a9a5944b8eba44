package core

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/actors"
)

// TestChanceComesFromRand: with a rand of the program's own the numbers of the sessions repeat with it; without one they
// are the runtime's.
func TestChanceComesFromRand(t *testing.T) {
	numbers := func(draw func() float64) (out [8]float64) {
		next := newSupervisor(Options{Common: &actors.Common{}, Rand: draw}, &Shared{}).sessionRand()
		for i := range out {
			if out[i] = next(); out[i] < 0 || out[i] >= 1 {
				t.Errorf("%v is not in [0,1)", out[i])
			}
		}
		return out
	}
	half := func() float64 { return 0.5 }
	third := func() float64 { return 1. / 3 }
	if numbers(half) != numbers(half) {
		t.Error("the same draws give other numbers")
	}
	if numbers(half) == numbers(third) {
		t.Error("other draws give the same numbers")
	}
	if numbers(nil) == numbers(nil) {
		t.Error("the runtime's generator repeats itself")
	}
}
