package actors

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace guards a defect: each notification of a server about its lists and resources became an event at once, so that
// one that tells without a pause pushed everything else out of the queues of those who watch.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var received []string
		p := &coalescer{publish: func(what string) { received = append(received, what) }}
		p.addChange("a", true)
		if len(received) != 1 {
			t.Fatalf("told %v at once, want a", received)
		}
		for range 1000 { // ten seconds of noise
			p.addChange("a", true)
			p.addChange("b", true)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(coalesceEvery)
		synctest.Wait()
		if n := len(received); n < 190 || n > 210 {
			t.Errorf("told %d times, want about 200", n)
		}
		if last := received[len(received)-2:]; last[0] != "a" || last[1] != "b" {
			t.Errorf("the last ones were %v", last)
		}
		received = nil
		for i := range 5000 {
			p.addChange(fmt.Sprint(i), false)
		}
		p.addChange("must", true)
		time.Sleep(coalesceEvery)
		synctest.Wait()
		if n := len(received); n > maxCoalesced+2 || received[n-1] != "must" {
			t.Errorf("told %d, the last %q", n, received[n-1])
		}
	})
}

// TestWatchedHolds: updates of resources without a subscription reach no watcher.
func TestWatchedHolds(t *testing.T) {
	var w Subscriptions
	if some, this := w.hasURI("a"); some || this {
		t.Error("an empty one holds something")
	}
	w.addURI("a")
	if some, this := w.hasURI("b"); !some || this {
		t.Error("a is watched, b is not")
	}
	if some, this := w.hasURI("a"); !some || !this {
		t.Error("a is watched")
	}
}
