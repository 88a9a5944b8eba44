//go:build !race

package audit

import "testing"

// The race detector drops what a sync.Pool keeps, at random, so that a hash takes more there. A whole call is counted without it in
// test/bench/supervision.
func TestHashTakesOneAllocation(t *testing.T) {
	args := []byte(`{"path":"notes/2026/november.md","limit":100,"deep":{"b":[1,2],"a":"x\ny"}}`)
	if n := testing.AllocsPerRun(200, func() { hashOf(args) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
