package invariant

import (
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestRunOrderAgainstASearch compares findRunMisfit with a search through all orders, on few runs in all kinds of positions.
func TestRunOrderAgainstASearch(t *testing.T) {
	// The object is the count of a tool. A run without a value leaves two possible counts.
	model := (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{0} },
		Step: func(state, input, _ any) []any {
			count, value := state.(int), input.(int)
			switch value {
			case 0:
				return []any{count, count + 1}
			case count + 1:
				return []any{value}
			}
			return nil
		},
		Equal: func(a, b any) bool { return a == b },
	}).ToModel()
	seen := map[misfitReason]int{}
	for seed := range uint64(30_000) {
		r := rand.New(rand.NewPCG(seed, 0))
		runs := make([]toolRun, 1+r.IntN(7))
		var ops []porcupine.Operation
		// Half of the values are those of an order, so that a part of the cases fits.
		places, count := 1+r.Int64N(12), 0
		for i := range runs {
			runs[i].from = r.Int64N(places)
			runs[i].to = runs[i].from + r.Int64N(places)
			switch count++; r.IntN(4) {
			case 0:
			case 1:
				runs[i].value = 1 + r.IntN(len(runs))
			default:
				runs[i].value = count
			}
			ops = append(ops, porcupine.Operation{ClientId: i, Input: runs[i].value, Call: runs[i].from, Return: runs[i].to})
		}
		misfit := findRunMisfit(runs)
		seen[misfit.why]++
		if want := porcupine.CheckOperations(model, ops); (misfit.why == runsFit) != want {
			t.Fatalf("seed %d: %+v of %+v, and an order exists: %v", seed, misfit, runs, want)
		}
	}
	for _, why := range []misfitReason{runsFit, valueTwice, valueMissing, valuesExchanged} {
		if seen[why] < 1000 {
			t.Errorf("only %d cases of reason %d", seen[why], why)
		}
	}
}
