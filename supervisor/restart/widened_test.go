package restart_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

func ask(g *restart.Gate, now time.Time, names ...string) (granted []string) {
	for _, name := range names {
		g.Enqueue(now, restart.Request{Server: name, Kind: messages.Stdio})
	}
	granted, _ = g.Next(now)
	return granted
}

// What widens a gate that was narrowed: a start that began since, and is not starved, once; not an answer that came late, nor one
// from before.
func TestWhatWidensTheGate(t *testing.T) {
	g := restart.NewGate(restart.Limits{Processes: 8})
	now := start
	width := func(want int, after string) {
		t.Helper()
		if got := g.Stats().Width; got != want {
			t.Errorf("%s: the gate is %d wide, not %d", after, got, want)
		}
	}
	var first []string
	for i := range 8 {
		first = append(first, fmt.Sprint("first", i))
	}
	ask(g, now, first...)
	now = now.Add(1500 * time.Millisecond)
	g.Waited(now, "first0", 100*time.Millisecond, 1400*time.Millisecond)
	width(4, "a start is starved")
	for _, name := range first {
		g.Answered(now, name)
	}
	width(4, "those answer that began before")
	ask(g, now, "quick", "late")
	now = now.Add(1500 * time.Millisecond)
	g.Waited(now, "quick", time.Second, 100*time.Millisecond)
	width(5, "one is not starved")
	g.Waited(now, "quick", time.Second, 100*time.Millisecond)
	g.Answered(now, "quick")
	width(5, "it says so again, and answers")
	now = now.Add(time.Second)
	g.Answered(now, "late")
	width(5, "one answers after its hold")
}

// A start that waits for a processor holds its own slot for longer, and no other one.
func TestALongerHoldIsItsOwn(t *testing.T) {
	g := restart.NewGate(restart.Limits{Processes: 2})
	ask(g, start, "starved")
	ask(g, start.Add(500*time.Millisecond), "silent")
	g.Waited(start.Add(1500*time.Millisecond), "starved", time.Second, 1400*time.Millisecond)
	if granted := ask(g, start.Add(2600*time.Millisecond), "next", "later"); len(granted) != 1 || granted[0] != "next" {
		t.Errorf("granted %v when the hold of one of two had ended", granted)
	}
}

// As many may install apart as may be silent; what installs beside them counts as silent.
func TestInstallationsAreBounded(t *testing.T) {
	g := restart.NewGate(restart.Limits{Processes: 1, UnansweredFactor: 1})
	for _, name := range []string{"one", "two"} {
		if granted := ask(g, start, name); len(granted) != 1 {
			t.Fatalf("%s is not granted: %v", name, granted)
		}
		g.Installing(start, name)
	}
	if granted := ask(g, start, "three"); len(granted) != 0 {
		t.Errorf("%v is granted beside two that have not answered, where one may be silent", granted)
	}
}

// A server that has failed does not take the place of others, even if it was not at fault.
func TestWhoDisplacesOthers(t *testing.T) {
	for _, c := range []struct {
		record restart.Record
		want   bool
	}{
		{restart.Record{}, true},
		{restart.Record{EverConnected: true, Attempts: 3}, true},
		{restart.Record{Attempts: 1}, false},
		{restart.Record{Exhausted: 1}, false},
		{restart.Record{EverConnected: true, Parked: true}, false},
		{restart.Record{EverConnected: true, Displaced: true}, false},
	} {
		if got := c.record.Displaces(); got != c.want {
			t.Errorf("%+v displaces: %v", c.record, got)
		}
	}
}
