package restart_test

import (
	"fmt"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

// TestInstallationsKeepNobodyWaiting has as many servers install as there are places for silent ones: a healthy server
// behind them starts at once, and so many silent ones as before find a place.
func TestInstallationsKeepNobodyWaiting(t *testing.T) {
	g := restart.NewGate(restart.Limits{Processes: 2, UnansweredFactor: 2})
	now := start
	ask := func(name string) {
		g.Enqueue(now, restart.Request{Server: name, Kind: messages.Stdio, Displaces: true})
	}
	for i := range 4 {
		ask(fmt.Sprint("npx", i))
	}
	for range 2 {
		granted, _ := g.Next(now)
		if len(granted) != 2 {
			t.Fatalf("granted %v", granted)
		}
		now = now.Add(restart.DefaultLimits(1).Hold)
	}
	for i := range 4 {
		g.Installing(now, fmt.Sprint("npx", i))
	}
	for i := range 3 {
		ask(fmt.Sprint("healthy", i))
	}
	granted, _ := g.Next(now)
	if len(granted) != 2 { // all slots are free, and no more than the slots are granted
		t.Errorf("granted %v beside four installations", granted)
	}
	if victims := g.Displace(now); victims != nil {
		t.Errorf("%v are displaced in the middle of an installation", victims)
	}
	if s := g.Stats(); s.Installing != 4 || s.Unanswered != 2 {
		t.Errorf("%+v", s)
	}
	for i := range 4 {
		g.Answered(now, fmt.Sprint("npx", i))
	}
	if s := g.Stats(); s.Installing != 0 || s.Unanswered != 2 {
		t.Errorf("%+v", s)
	}
	if err := g.Check(); err != nil {
		t.Error(err)
	}
}

// A server that says within its hold that it installs gives its slot to the next one then, and not when the hold ends.
func TestAnInstallationHoldsNoSlot(t *testing.T) {
	g := restart.NewGate(restart.Limits{Processes: 1})
	now := start
	for _, name := range []string{"npx", "healthy"} {
		g.Enqueue(now, restart.Request{Server: name, Kind: messages.Stdio})
	}
	if granted, _ := g.Next(now); len(granted) != 1 || granted[0] != "npx" {
		t.Fatalf("granted %v", granted)
	}
	g.Installing(now, "npx")
	if granted, _ := g.Next(now); len(granted) != 1 || granted[0] != "healthy" {
		t.Errorf("granted %v beside an installation", granted)
	}
}

// A server that installs is not silent: of those that are, the one that has been for longest makes room, whichever came first.
func TestAnInstallationIsNotTheOldestSilence(t *testing.T) {
	for first := range 2 {
		g := restart.NewGate(restart.Limits{Processes: 2, UnansweredFactor: 2})
		now := start
		ask := func(name string) {
			g.Enqueue(now, restart.Request{Server: name, Kind: messages.Stdio, Displaces: true})
		}
		for i := range 4 {
			ask(fmt.Sprint("npx", i))
		}
		for range 2 {
			if granted, _ := g.Next(now); len(granted) != 2 {
				t.Fatalf("granted %v", granted)
			}
			now = now.Add(restart.DefaultLimits(1).Hold)
		}
		g.Installing(now, fmt.Sprint("npx", first))
		ask("silent")
		if granted, _ := g.Next(now); len(granted) != 1 {
			t.Fatalf("granted %v in the place of an installation", granted)
		}
		now = now.Add(restart.DefaultLimits(1).Hold)
		ask("healthy")
		if granted, _ := g.Next(now); len(granted) != 0 {
			t.Fatalf("granted %v beside four that are silent", granted)
		}
		if got := g.Displace(now); len(got) != 1 || got[0] != fmt.Sprint("npx", 1-first) {
			t.Errorf("npx%d installs, and %v makes room", first, got)
		}
		if err := g.Check(); err != nil {
			t.Error(err)
		}
	}
}
