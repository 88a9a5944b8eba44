package opening_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/opening"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// story describes the work of an attempt's processes, as functions of the time since its beginning.
type story struct {
	limits    opening.Limits
	cpu       func(at time.Duration) time.Duration
	waited    func(at time.Duration) time.Duration
	moved     func(at time.Duration) uint64
	elsewhere func(at time.Duration) bool
	heard     time.Duration // 0: never
	unseen    bool
}

// run follows the verdicts until the attempt is over, and tells when that was and whether installing was said.
func (s story) run() (over time.Duration, installing bool, looks int) {
	state, v := opening.Begin(s.limits, start)
	for ; !v.Over; looks++ {
		at := v.At.Sub(start)
		k := opening.Observation{At: v.At, Seen: !s.unseen}
		if s.heard > 0 && at >= s.heard {
			k.Heard = start.Add(s.heard)
		}
		if s.cpu != nil {
			k.CPU = s.cpu(at)
		}
		if s.waited != nil {
			k.Waited = s.waited(at)
		}
		if s.moved != nil {
			k.Moved = s.moved(at)
		}
		if s.elsewhere != nil {
			k.Elsewhere = s.elsewhere(at)
		}
		before := v.At
		state, v = state.Observe(s.limits, k)
		if !v.Over && !v.At.After(before) {
			panic("no progress")
		}
		over = at.Round(time.Millisecond)
	}
	return over, state.Installing, looks
}

// until works for a share of the time, and stops at end.
func until(end time.Duration, share float64) func(time.Duration) time.Duration {
	return func(at time.Duration) time.Duration { return time.Duration(float64(min(at, end)) * share) }
}

func TestHowLongAnAttemptGoesOn(t *testing.T) {
	const s, m = time.Second, time.Minute
	server := opening.Limits{Silence: 30 * s, Most: opening.MaxAttempt}
	npx := opening.Limits{Silence: 30 * s, Most: opening.MaxAttempt, Runner: true}
	exact := opening.Limits{Silence: 7 * s, Most: opening.MaxAttempt, Runner: true, Exact: true}
	for _, c := range []struct {
		name       string
		story      story
		over       time.Duration
		installing bool
	}{
		{"a silent server", story{limits: server}, 30 * s, false},
		{"a server that burns a processor and says nothing", story{limits: server, cpu: until(time.Hour, 1)}, 30 * s, false},
		{"a server on a quarter of a core", story{limits: server, cpu: until(time.Hour, 0.25), waited: until(time.Hour, 0.75)}, 2 * m, false},
		{"a server that waited for a processor at first", story{limits: server, waited: until(20*s, 1)}, 50 * s, false},
		{"a server that never gets a processor", story{limits: server, waited: until(time.Hour, 1)}, 10 * m, false},
		{"a silent npx", story{limits: npx}, 30 * s, false},
		{"npx that installs for 54 s", story{limits: npx, cpu: until(54*s, 0.4)}, 84 * s, true},
		{"npx that downloads with little work", story{limits: npx, moved: func(at time.Duration) uint64 { return uint64(min(at, m).Milliseconds()) * 100 }}, 90 * s, true},
		{"npx that installs for ever", story{limits: npx, cpu: until(time.Hour, 0.4)}, 10 * m, true},
		{"npx that looks at its watch", story{limits: npx, cpu: until(time.Hour, 0.004)}, 30 * s, false},
		{"npx whose server spoke and then fell silent", story{limits: npx, cpu: until(time.Hour, 0.5), heard: 3 * s}, 33 * s, false},
		{"npx whose server spoke after 2 min", story{limits: npx, cpu: until(time.Hour, 0.5), heard: 2 * m}, 150 * s, true},
		{"npx that starts warm", story{limits: npx, cpu: until(3*s, 0.5)}, 34 * s, false},
		{"docker while an image is fetched", story{limits: npx, elsewhere: func(at time.Duration) bool { return at < 3*m }}, 3*m + 28*s, true},
		{"npx on a system that tells nothing", story{limits: npx, unseen: true}, 2 * m, true},
		{"a server on a system that tells nothing", story{limits: server, unseen: true}, 30 * s, false},
		{"npx with the person's own bound", story{limits: exact, cpu: until(time.Hour, 1), waited: until(time.Hour, 1)}, 7 * s, false},
		{"a bound beyond the longest attempt", story{limits: opening.Limits{Silence: time.Hour, Most: opening.MaxAttempt, Exact: true}}, time.Hour, false},
	} {
		over, installing, _ := c.story.run()
		if over != c.over || installing != c.installing {
			t.Errorf("%s: over after %v, installing %v; want %v, %v", c.name, over, installing, c.over, c.installing)
		}
	}
}

// TestAServerThatIsNoRunnerIsHardlyLookedAt: looking costs reading /proc, and most servers answer in a second.
func TestAServerThatIsNoRunnerIsHardlyLookedAt(t *testing.T) {
	for _, c := range []struct {
		name  string
		story story
		looks int
	}{
		{"no process", story{limits: opening.Limits{Silence: 30 * time.Second, Most: opening.MaxAttempt}}, 1},
		{"a silent process", story{limits: opening.Limits{Silence: 30 * time.Second, Most: opening.MaxAttempt, Process: true}}, 2},
		{"a process that has said something", story{limits: opening.Limits{Silence: 30 * time.Second, Most: opening.MaxAttempt, Process: true},
			heard: time.Second, waited: until(1400*time.Millisecond, 0.9)}, 2},
		{"a process that the system does not show", story{limits: opening.Limits{Silence: 30 * time.Second, Most: opening.MaxAttempt, Process: true},
			unseen: true, waited: until(time.Hour, 0.9)}, 2},
	} {
		if _, _, looks := c.story.run(); looks != c.looks {
			t.Errorf("%s: %d looks, want %d", c.name, looks, c.looks)
		}
	}
}

// TestAStarvedProcessIsLookedAtAgain: the gate holds its slot for longer by what it waited, and must be told in time.
func TestAStarvedProcessIsLookedAtAgain(t *testing.T) {
	for _, exact := range []bool{false, true} {
		l := opening.Limits{Silence: time.Minute, Most: opening.MaxAttempt, Process: true, Exact: exact}
		state, v := opening.Begin(l, start)
		var at []time.Duration
		for !v.Over && v.At.Sub(start) < 25*time.Second {
			after := v.At.Sub(start)
			state, v = state.Observe(l, opening.Observation{At: v.At, Seen: true, Waited: until(4*time.Second, 0.9)(after)})
			if at = append(at, after); state.Starved != (after < 4500*time.Millisecond) {
				t.Errorf("after %v it is starved: %v", after, state.Starved)
			}
		}
		if got := fmt.Sprint(at); got != "[1.5s 2.5s 3.5s 4.5s]" {
			t.Errorf("it is looked at after %v", got)
		}
		state, v = opening.Begin(l, start)
		for at = nil; !v.Over && v.At.Sub(start) < 40*time.Second; {
			at = append(at, v.At.Sub(start))
			state, v = state.Observe(l, opening.Observation{At: v.At, Seen: true, Waited: v.At.Sub(start)})
		}
		if n := len(at); n != 20 || at[n-1] != 20500*time.Millisecond {
			t.Errorf("it is looked at after %v", at)
		}
	}
}

func ExampleGrown() {
	for timeouts := range 6 {
		fmt.Print(opening.Grown(30*time.Second, timeouts), " ")
	}
	fmt.Println(opening.Grown(time.Hour, 3))
	// Output: 30s 1m0s 2m0s 4m0s 5m0s 5m0s 1h0m0s
}

func FuzzLook(f *testing.F) {
	f.Add(int64(30), true, false, int64(1), int64(2), int64(3), uint64(4))
	f.Fuzz(func(t *testing.T, silence int64, runner, exact bool, passed, cpu, waited int64, moved uint64) {
		l := opening.Limits{Silence: time.Duration(silence%1e12 + 1e12), Most: opening.MaxAttempt, Runner: runner, Exact: exact}
		state, _ := opening.Begin(l, start)
		var v opening.Decision
		at := start
		for range 20 {
			at = at.Add(time.Duration(passed % 1e11))
			state, v = state.Observe(l, opening.Observation{At: at, Seen: moved%2 == 0, CPU: time.Duration(cpu), Waited: time.Duration(waited), Moved: moved})
			if most := start.Add(max(l.Most, l.Silence)); !v.Over && !at.Before(most) {
				t.Fatalf("it goes on at %v", at.Sub(start))
			}
			if !v.Over && at.Before(v.At.Add(-max(l.Most, l.Silence)*2)) {
				t.Fatalf("the next look is at %v", v.At)
			}
			if state.SilentFor() > state.Lasted() || state.SilentFor() < 0 {
				t.Fatalf("silent for %v of %v", state.SilentFor(), state.Lasted())
			}
		}
	})
}
