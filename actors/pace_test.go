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
		var told []string
		p := &pace{tell: func(what string) { told = append(told, what) }}
		p.note("a", true)
		if len(told) != 1 {
			t.Fatalf("told %v at once, want a", told)
		}
		for range 1000 { // ten seconds of noise
			p.note("a", true)
			p.note("b", true)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(paceEvery)
		synctest.Wait()
		if n := len(told); n < 190 || n > 210 {
			t.Errorf("told %d times, want about 200", n)
		}
		if last := told[len(told)-2:]; last[0] != "a" || last[1] != "b" {
			t.Errorf("the last ones were %v", last)
		}
		told = nil
		for i := range 5000 {
			p.note(fmt.Sprint(i), false)
		}
		p.note("must", true)
		time.Sleep(paceEvery)
		synctest.Wait()
		if n := len(told); n > maxPaced+2 || told[n-1] != "must" {
			t.Errorf("told %d, the last %q", n, told[n-1])
		}
	})
}

// TestWatchedHolds: nobody is told of what nobody watches.
func TestWatchedHolds(t *testing.T) {
	var w Watched
	if some, this := w.holds("a"); some || this {
		t.Error("an empty one holds something")
	}
	w.add("a")
	if some, this := w.holds("b"); !some || this {
		t.Error("a is watched, b is not")
	}
	if some, this := w.holds("a"); !some || !this {
		t.Error("a is watched")
	}
}
