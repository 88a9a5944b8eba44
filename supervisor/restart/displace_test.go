package restart_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// silentFor makes a gate with 2 slots and 4 places, all of which silent servers hold: s0 and s1 since the start, s2 and
// s3 since 2 s after it. It is 4 s later than the start when it returns.
func silentFor(t *testing.T, spared ...string) (g *restart.Gate, now time.Time) {
	t.Helper()
	g = restart.NewGate(restart.Limits{Processes: 2, UnansweredFactor: 2})
	for i := range 4 {
		name := fmt.Sprint("s", i)
		g.Enqueue(start, restart.Request{Server: name, Kind: messages.Stdio, Spared: slices.Contains(spared, name)})
	}
	for _, after := range []time.Duration{0, 2 * time.Second, 4 * time.Second} {
		now = start.Add(after)
		g.Next(now)
		expectDisplaced(t, g, now)
	}
	return g, now
}

func expectDisplaced(t *testing.T, g *restart.Gate, now time.Time, want ...string) {
	t.Helper()
	if got := g.Displace(now); !slices.Equal(got, want) {
		t.Errorf("%v after the start %v are displaced, want %v", now.Sub(start), got, want)
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
}

func eager(server string) restart.Request {
	return restart.Request{Server: server, Kind: messages.Stdio, Priority: restart.Never, Displaces: true}
}

// The oldest gives its place, once; the place is free when it has ended, and not before.
func TestTheOldestSilentAttemptGivesItsPlace(t *testing.T) {
	g, now := silentFor(t)
	g.Enqueue(now, eager("new"))
	for range 3 {
		if granted, wake := g.Next(now); granted != nil || !wake.IsZero() {
			t.Errorf("granted %v, wake %v", granted, wake.Sub(start))
		}
		if now.Equal(start.Add(4 * time.Second)) {
			expectDisplaced(t, g, now, "s0")
		}
		expectDisplaced(t, g, now)
		now = now.Add(time.Second)
	}
	g.Closed(now, "s0")
	if granted, _ := g.Next(now); !slices.Equal(granted, []string{"new"}) {
		t.Errorf("granted %v", granted)
	}
	expectDisplaced(t, g, now)
}

// A displaced server that answers before its end frees its place as well.
func TestADisplacedAttemptMayAnswer(t *testing.T) {
	g, now := silentFor(t)
	g.Enqueue(now, eager("new"))
	g.Next(now)
	expectDisplaced(t, g, now, "s0")
	g.Answered(now, "s0")
	if granted, _ := g.Next(now); !slices.Equal(granted, []string{"new"}) {
		t.Errorf("granted %v", granted)
	}
	g.Enqueue(now, eager("newer"))
	g.Next(now)
	expectDisplaced(t, g, now, "s1")
}

// What is spared is left out, what has not been silent for its 2 s is not displaced, and wake is when it has been.
func TestWhatIsNotDisplaced(t *testing.T) {
	g, now := silentFor(t, "s0", "s1", "s2", "s3")
	g.Enqueue(now, eager("new"))
	g.Next(now)
	expectDisplaced(t, g, now)
	g.Closed(now, "s2")
	g.Enqueue(now, eager("newer"))
	g.Enqueue(now, restart.Request{Server: "failed before", Kind: messages.Stdio})
	granted, wake := g.Next(now)
	if !slices.Equal(granted, []string{"new"}) || !wake.Equal(now.Add(2*time.Second)) {
		t.Errorf("granted %v, wake %v", granted, wake.Sub(now))
	}
	expectDisplaced(t, g, now)
	now = wake
	g.Next(now)
	expectDisplaced(t, g, now, "new")
}

// A request that does not displace waits, also where many could be displaced, and the gate does not wake for it.
func TestFailedServersDoNotDisplace(t *testing.T) {
	g, now := silentFor(t)
	g.Enqueue(now, restart.Request{Server: "failed before", Kind: messages.Stdio, Priority: restart.Healthy})
	if granted, wake := g.Next(now); granted != nil || !wake.IsZero() {
		t.Errorf("granted %v, wake %v", granted, wake.Sub(start))
	}
	expectDisplaced(t, g, now)
}

// The record of a server that was displaced: no failure is counted, it waits behind everything and displaces nothing, is
// spared until it has had an attempt of its own, and is like any other then.
func TestRecordOfADisplacedServer(t *testing.T) {
	p := restart.DefaultPolicy()
	half := func() float64 { return 0.5 }
	r := restart.Record{}
	if !r.Displaces() || r.Priority() != restart.Never {
		t.Errorf("a server that was never tried: %+v", r)
	}
	r, d := p.Down(p.Displaced(r), restart.Down{Kind: messages.Stdio, Class: messages.ClassExhausted}, start, half)
	if r.Attempts != 0 || !r.Displaced || r.Displaces() || r.Priority() != restart.Probe || d.Retry != messages.RetryAt {
		t.Errorf("displaced: %+v %+v", r, d)
	}
	if c := p.Cleared(r); !c.Displaced {
		t.Error("a person's wish makes it displaced twice in a row")
	}
	if c := p.Connected(r); c.Displaced || !c.Displaces() || c.Priority() != restart.Healthy {
		t.Errorf("connected: %+v", c)
	}
	r, _ = p.Down(r, restart.Down{Kind: messages.Stdio, Class: messages.ClassTimeout}, start, half)
	if r.Attempts != 1 || r.Displaced || r.Displaces() || r.Priority() != restart.Never {
		t.Errorf("timed out: %+v", r)
	}
}

// TestSilentServersCostTheirSlots has 100 silent servers in front of healthy ones and slow ones behind them, on 2
// processors: every silent one costs those behind it a slot for 2 s, and none its connect timeout. The slow ones, which
// answer after 54 s, are up after their second attempt at the latest.
func TestSilentServersCostTheirSlots(t *testing.T) {
	w := newWorld(restart.DefaultLimits(2), 6)
	silent := life{kind: messages.Stdio, lasts: 30 * time.Second, class: messages.ClassTimeout}
	for i := range 100 {
		w.add(fmt.Sprintf("silent-%02d", i), silent)
	}
	for i := range 4 {
		w.add(fmt.Sprintf("slow-%d", i), life{kind: messages.Stdio, answers: 54 * time.Second})
	}
	w.add("healthy", life{kind: messages.Stdio, answers: time.Second})
	for i := range 40 {
		w.add(fmt.Sprintf("more-%02d", i), silent)
	}
	// In the middle of it a person asks for a server, which had to wait for its turn.
	w.lives["asked"] = life{kind: messages.Stdio, answers: time.Second}
	w.at(17*time.Second, "asked", "asked for")
	w.run(t, start.Add(10*time.Minute))
	if w.most.Unanswered != 64 || w.most.Processes != 8 {
		t.Errorf("at most %d unanswered, %d slots", w.most.Unanswered, w.most.Processes)
	}
	for server, within := range map[string]time.Duration{"healthy": 27 * time.Second, "asked": 20 * time.Second} {
		if up := w.ready[server].Sub(start); w.ready[server].IsZero() || up > within {
			t.Errorf("%s was up after %v", server, up)
		}
	}
	for i := range 4 {
		name := fmt.Sprintf("slow-%d", i)
		if n := len(w.starts[name]); w.ready[name].IsZero() || n > 2 {
			t.Errorf("%s was started %d times, and was up after %v", name, n, w.ready[name].Sub(start))
		}
	}
	for name, starts := range w.starts {
		if len(starts) > 20 {
			t.Errorf("%s was started %d times in 10 minutes", name, len(starts))
		}
	}
}
