package budget_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/budget"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// floodBucket charges pieces of work one after the other, each of which takes as long as it costs, and obeys the pauses.
func floodBucket(piece time.Duration, working int, long time.Duration) (work time.Duration, longest time.Duration) {
	var p budget.LeakyBucket
	now := began
	for now.Sub(began) < long {
		now = now.Add(piece)
		p = p.Charge(piece, working, now)
		work += piece
		for d := p.Pause(now); d > 0; d = p.Pause(now) {
			longest = max(longest, d)
			now = now.Add(d)
		}
	}
	return work, longest
}

// TestAFloodGetsItsPart: without requests under way a sixteenth of the time, with many of them half of it, and a burst first.
func TestAFloodGetsItsPart(t *testing.T) {
	for working, parts := range map[int]time.Duration{0: 16, 1: 8, 3: 4, 7: 2, 1000: 2} {
		for _, piece := range []time.Duration{20 * time.Microsecond, time.Millisecond, 30 * time.Millisecond} {
			const long = 20 * time.Second
			work, longest := floodBucket(piece, working, long)
			want := long/parts + budget.Burst
			if work < want-piece-want/100 || work > want+piece+want/100 {
				t.Errorf("pieces of %v, %d under way: %v of work in %v, want %v", piece, working, work, long, want)
			}
			if longest > 100*time.Millisecond {
				t.Errorf("a pause of %v", longest)
			}
		}
	}
}

// TestWhoDoesNotFloodIsNotPaused: ten thousand messages a second are read as they come, and so is a burst once in a while.
func TestWhoDoesNotFloodIsNotPaused(t *testing.T) {
	var p budget.LeakyBucket
	now := began
	for range 100_000 {
		now = now.Add(100 * time.Microsecond)
		if p = p.Charge(5*time.Microsecond, 0, now); p.Pause(now) > 0 {
			t.Fatal("paused")
		}
	}
	for range 10 {
		now = now.Add(time.Second)
		if p = p.Charge(budget.Burst, 0, now); p.Pause(now) > 0 {
			t.Fatal("a burst is paused")
		}
	}
	p = p.Charge(budget.Burst, 0, now)
	if d := p.Pause(now); d != 100*time.Millisecond {
		t.Errorf("twice a burst is paused for %v", d)
	}
	if p.Pause(now.Add(-time.Hour)) == 0 {
		t.Error("a clock that went back paid the debt")
	}
	if p.Pause(now.Add(2*time.Second)) != 0 {
		t.Error("the debt is never paid")
	}
}

// TestWhoDoesNotKnowChangesNothing: standard error of a server with calls under way is paid for by them, too.
func TestWhoDoesNotKnowChangesNothing(t *testing.T) {
	now := began
	p := budget.LeakyBucket{}.Charge(budget.Burst, 3, now).Charge(time.Millisecond, budget.Unknown, now)
	if d := p.Pause(now); d != 4*time.Millisecond {
		t.Errorf("paused for %v", d)
	}
}

func BenchmarkTakeGive(b *testing.B) {
	s := budget.New(0).Open("s")
	for b.Loop() {
		_ = s.Take(100)
		s.Give(100)
	}
}
