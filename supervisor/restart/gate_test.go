package restart_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

func ExampleGate() {
	g := restart.NewGate(restart.Limits{Processes: 2})
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	begin := now
	next := func(what string) {
		granted, wake := g.Next(now)
		until := "an answer"
		if !wake.IsZero() {
			until = wake.Sub(begin).String()
		}
		fmt.Printf("%-4v %-22s start %v, wait for %s\n", now.Sub(begin), what, granted, until)
	}
	ask := func(server string, p restart.Priority, after time.Duration) {
		g.Enqueue(now, restart.Request{Server: server, Kind: messages.Stdio, Priority: p, NotBefore: begin.Add(after)})
	}
	ask("new", restart.Never, 0)
	ask("parked", restart.Probe, 0)
	ask("healthy", restart.Healthy, 0)
	ask("crashed", restart.Healthy, time.Second)
	next("four ask, two slots")

	now = now.Add(time.Second)
	ask("asked", restart.Urgent, 0)
	g.Answered(now, "healthy")
	next("one slot is free")

	now = now.Add(time.Second)
	next("new is silent for 2s")

	now = now.Add(time.Second)
	g.Answered(now, "asked")
	g.Answered(now, "crashed")
	next("two slots are free")
	// Output:
	// 0s   four ask, two slots    start [healthy new], wait for 1s
	// 1s   one slot is free       start [asked], wait for 2s
	// 2s   new is silent for 2s   start [crashed], wait for 3s
	// 3s   two slots are free     start [parked], wait for an answer
}

// TestOrder fills the only slot, lets requests wait, and reads the order in which they start as the slot becomes free
// second by second.
func TestOrder(t *testing.T) {
	type request struct {
		server   string
		at       time.Duration // of the Ask
		priority restart.Priority
		after    time.Duration // NotBefore, from the start
	}
	for _, c := range []struct {
		name     string
		requests []request
		opens    time.Duration // when the slot becomes free for the first time
		want     string
	}{
		{"classes", []request{
			{"probe", 0, restart.Probe, 0}, {"never", 0, restart.Never, 0}, {"healthy", 0, restart.Healthy, 0}, {"asked", 0,
				restart.Urgent, 0},
		}, 1 * time.Second, "asked healthy never probe"},
		{"first come, first served inside a class", []request{
			{"b", 1, restart.Never, 0}, {"a", 2, restart.Never, 0}, {"c", 2, restart.Never, 0},
		}, 1 * time.Second, "b a c"},
		{"waiting begins at NotBefore", []request{
			{"early ask", 0, restart.Never, 5 * time.Second}, {"late ask", 3 * time.Second, restart.Never, 0},
		}, 6 * time.Second, "late_ask early_ask"},
		{"10 s of waiting raise by one class", []request{
			{"never", 0, restart.Never, 0}, {"healthy", 2 * time.Second, restart.Healthy, 0},
		}, 11 * time.Second, "never healthy"},
		{"9.9 s do not", []request{
			{"never", 0, restart.Never, 0}, {"healthy", 2 * time.Second, restart.Healthy, 0},
		}, 9900 * time.Millisecond, "healthy never"},
		{"a probe that waited for 30 s takes turns with what persons ask for now", []request{
			{"x", 0, restart.Probe, 0}, {"y", 0, restart.Healthy, 0}, {"z", 20 * time.Second, restart.Healthy, 0},
			{"a", 29 * time.Second, restart.Urgent, 0}, {"b", 29 * time.Second, restart.Urgent, 0}, {"c", 29 * time.Second,
				restart.Urgent, 0},
		}, 30 * time.Second, "x a y b z c"}, // the first one to hold the slot was asked for
		{"asking again keeps the place", []request{
			{"a", 0, restart.Never, 0}, {"b", 1 * time.Second, restart.Never, 0}, {"a", 2 * time.Second, restart.Never, 0},
		}, 3 * time.Second, "a b"},
		{"and may raise the class", []request{
			{"a", 0, restart.Probe, 0}, {"b", 0, restart.Healthy, 0}, {"a", 1 * time.Second, restart.Urgent, 0},
		}, 3 * time.Second, "a b"},
		{"asking for later gives it up", []request{
			{"a", 0, restart.Never, 0}, {"b", 1 * time.Second, restart.Never, 0}, {"a", 2 * time.Second, restart.Never,
				3 * time.Second},
		}, 4 * time.Second, "b a"},
	} {
		g := restart.NewGate(restart.Limits{Processes: 1, Hold: time.Hour})
		g.Enqueue(start, restart.Request{Server: "first", Kind: messages.Stdio, Priority: restart.Urgent})
		running, _ := g.Next(start)
		for _, r := range c.requests {
			g.Enqueue(start.Add(r.at), restart.Request{
				Server: strings.ReplaceAll(r.server, " ", "_"), Kind: messages.Stdio, Priority: r.priority,
				NotBefore: start.Add(r.after),
			})
		}
		var order []string
		for now := start.Add(c.opens); len(running) == 1; now = now.Add(100 * time.Millisecond) {
			g.Closed(now, running[0])
			if running, _ = g.Next(now); len(running) == 1 {
				order = append(order, running[0])
			}
		}
		if got := strings.Join(order, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestKindsDoNotWaitForEachOther fills each limit and counts what passes.
func TestKindsDoNotWaitForEachOther(t *testing.T) {
	g := restart.NewGate(restart.DefaultLimits(2))
	for i := range 100 {
		for _, kind := range messages.TransportKinds {
			origin := ""
			if kind == messages.HTTP || kind == messages.SSE {
				origin = "https://one.example" // 200 servers at one origin
			}
			g.Enqueue(start, restart.Request{Server: fmt.Sprint(kind, i), Kind: kind, Origin: origin})
		}
	}
	granted, wake := g.Next(start)
	count := map[messages.TransportKind]int{}
	for _, server := range granted {
		count[messages.TransportKind(strings.TrimRight(server, "0123456789"))]++
	}
	origin := count[messages.HTTP] + count[messages.SSE]
	network := origin + count[messages.WebSocket] + count[messages.ClaudeAIProxy]
	if count[messages.Stdio] != 8 || count[messages.SDK] != 64 || origin != 16 || network != 64 {
		t.Errorf("granted %v", count)
	}
	if !wake.Equal(start.Add(2 * time.Second)) {
		t.Errorf("wake is %v", wake.Sub(start))
	}
	want := restart.Stats{Waiting: 600 - len(granted), Due: 600 - len(granted), Processes: 8, Width: 8, Network: 64, InProcess: 64,
		Unanswered: 8, Granted: 136}
	if s := g.Stats(); s != want {
		t.Errorf("%+v", s)
	}
}

// TestAFullOriginDoesNotHoldUpOthers has the longest queue at the full origin in front.
func TestAFullOriginDoesNotHoldUpOthers(t *testing.T) {
	g := restart.NewGate(restart.Limits{PerOrigin: 1, Network: 3})
	ask := func(server, origin string, p restart.Priority) {
		g.Enqueue(start, restart.Request{Server: server, Kind: messages.HTTP, Origin: origin, Priority: p})
	}
	for i := range 5 {
		ask(fmt.Sprint("a", i), "a", restart.Urgent)
	}
	ask("b", "b", restart.Probe)
	expect := func(now time.Time, want string) {
		t.Helper()
		granted, _ := g.Next(now)
		if got := strings.Join(granted, " "); got != want {
			t.Errorf("%v: granted %q, want %q", now.Sub(start), got, want)
		}
		if err := g.Check(); err != nil {
			t.Error(err)
		}
	}
	expect(start, "a0 b")
	g.Answered(start, "a0")
	expect(start, "a1")
	expect(start.Add(1999*time.Millisecond), "")
	expect(start.Add(2*time.Second), "a2") // a1 is silent and has held its slot for long enough
}

func TestGrantsThatAreOpen(t *testing.T) {
	g := restart.NewGate(restart.Limits{Processes: 2, Hold: 2 * time.Second})
	ask := func(now time.Time) {
		g.Enqueue(now, restart.Request{Server: "a", Kind: messages.Stdio})
	}
	next := func(now time.Time, want int) time.Time {
		t.Helper()
		granted, wake := g.Next(now)
		if len(granted) != want {
			t.Errorf("%v: granted %v, want %d", now.Sub(start), granted, want)
		}
		if err := g.Check(); err != nil {
			t.Error(err)
		}
		return wake
	}
	ask(start)
	next(start, 1)
	next(start, 0) // one Ask, one grant
	ask(start)
	if wake := next(start.Add(time.Minute),
		0); !wake.IsZero() { // the old process may still be there: there is nothing to wake for
		t.Errorf("wakes at %v", wake)
	}
	g.Closed(start.Add(time.Minute), "a")
	next(start.Add(time.Minute), 1)
	g.Answered(start.Add(time.Minute), "a")
	ask(start.Add(time.Minute))
	g.Cancel("a")
	g.Cancel("a")
	next(start.Add(time.Hour), 0)
	// A server that was never queued changes nothing.
	g.Answered(start, "b")
	g.Closed(start, "b")
	g.Cancel("b")
	if s := g.Stats(); s != (restart.Stats{Width: 2, Granted: 2}) {
		t.Errorf("%+v", s)
	}
}

func TestAClockThatGoesBack(t *testing.T) {
	g := restart.NewGate(restart.Limits{Processes: 1})
	g.Enqueue(start, restart.Request{Server: "a", Kind: messages.Stdio})
	g.Enqueue(start, restart.Request{Server: "b", Kind: messages.Stdio, NotBefore: start.Add(time.Second)})
	if granted, _ := g.Next(start); len(granted) != 1 {
		t.Fatalf("granted %v", granted)
	}
	g.Answered(start.Add(-time.Hour), "a")
	if granted, wake := g.Next(start.Add(-time.Hour)); granted != nil || !wake.Equal(start.Add(time.Second)) {
		t.Errorf("granted %v, wake %v", granted, wake.Sub(start))
	}
	if granted, _ := g.Next(start.Add(time.Second)); len(granted) != 1 {
		t.Errorf("granted %v", granted)
	}
}

// A priority that does not exist counts as the highest: it must not leave the array of classes.
func TestPriorityBeyondTheHighest(t *testing.T) {
	g := restart.NewGate(restart.Limits{})
	g.Enqueue(start, restart.Request{Server: "a", Priority: 200})
	if granted, _ := g.Next(start); len(granted) != 1 {
		t.Errorf("granted %v", granted)
	}
}
