package admission_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/internal/admission"
)

func TestCounter(t *testing.T) {
	var c admission.Counter
	if first, second := c.Enter(), c.Enter(); !first || !second || c.Inside() != 2 || c.Leave() || c.Closed() || c.Drained() {
		t.Error("open")
	}
	if first, empty := c.Close(); !first || empty || !c.Closed() || c.Drained() {
		t.Error("closed with one inside")
	}
	if first, empty := c.Close(); first || empty {
		t.Error("closed twice")
	}
	if c.Enter() || !c.Leave() || !c.Drained() || c.Inside() != 0 {
		t.Error("drained")
	}
	var idle admission.Counter
	if first, empty := idle.Close(); !first || !empty || !idle.Drained() {
		t.Error("closed while empty")
	}
}

// TestTheEndIsSeenOnce: however callers and closers interleave, one of them sees the end, and nobody is inside then.
func TestTheEndIsSeenOnce(t *testing.T) {
	for range 500 {
		var c admission.Counter
		var inside, ends atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for c.Enter() {
					inside.Add(1)
					inside.Add(-1)
					if c.Leave() {
						ends.Add(1)
						if inside.Load() != 0 {
							t.Error("the end, and somebody is inside")
						}
					}
				}
			})
		}
		for range 2 {
			all.Go(func() {
				if first, empty := c.Close(); first && empty {
					ends.Add(1)
				}
			})
		}
		all.Wait()
		if ends.Load() != 1 || !c.Drained() {
			t.Fatalf("%d ends", ends.Load())
		}
	}
}
