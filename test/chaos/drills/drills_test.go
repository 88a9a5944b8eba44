package drills

import (
	"sync"
	"testing"
	"testing/synctest"
)

// Without a defect no drill finds anything, whatever its seed draws.
func TestADrillFindsNothingWithoutADefect(t *testing.T) {
	for _, d := range all {
		t.Run(d.name, func(t *testing.T) {
			for seed := range uint64(40) {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					playOne(d, Options{Progress: func(string) {}, Report: func(f Finding) {
						mu.Lock()
						defer mu.Unlock()
						t.Errorf("seed %d: %s %s: %s", seed, f.Invariant, f.Server, f.Text)
					}}, seed)
				})
			}
		})
	}
}
