package sim

import (
	"errors"
	"strings"
	"testing"
	"time"
)

const locked = `goroutine 10 [sync.Mutex.Lock, synctest bubble 1]:
internal/sync.runtime_SemacquireMutex(0x0?, 0x0?, 0x0?)
	/go/src/runtime/sema.go:95 +0x25
internal/sync.(*Mutex).lockSlow(0x22a18dc92120)
	/go/src/internal/sync/mutex.go:149 +0x15d
sync.(*Mutex).Lock(...)
	/go/src/sync/mutex.go:46
github.com/mcpvisor/mcpvisor/actors.(*Cell).Wait(0x0?)
	/src/actors/cell.go:112 +0x31
created by github.com/mcpvisor/mcpvisor/actors.start in goroutine 9
	/src/actors/server.go:37 +0xb8`

const holding = `goroutine 12 [chan send (durable), synctest bubble 1]:
github.com/mcpvisor/mcpvisor/actors.(*Cell).Publish(...)
	/src/actors/cell.go:99`

const running = `goroutine 14 [runnable, synctest bubble 1]:
github.com/mcpvisor/mcpvisor/supervisor/restart.Policy.Interval(...)
	/src/supervisor/restart/policy.go:226`

const calling = `goroutine 16 [select (durable), synctest bubble 1]:
github.com/mcpvisor/mcpvisor/actors.(*Watcher).Next(...)
	/src/actors/hub.go:267
github.com/mcpvisor/mcpvisor/actors.(*Cell).follow(...)
	/src/actors/cell.go:140`

// looks lets a watchdog look so often while a world stands still, and returns what it says at last.
func looks(d *watchdog, n int, stacks ...string) error {
	for range n {
		if err := d.checkProgress(func() []goroutine { return parseDump(strings.Join(stacks, "\n\n")) }); err != nil {
			return err
		}
	}
	return nil
}

func TestWatchdog(t *testing.T) {
	for _, c := range []struct {
		name   string
		looks  int
		stacks []string
		want   string // empty: nothing is said
	}{
		{"one look is not enough", 1, []string{locked}, ""},
		{"a mutex that nobody holds", ticksPerLook + 1, []string{locked},
			"A mutex is never unlocked: actors.(*Cell).Wait (cell.go:112) waits for it. No other goroutine is inside of actors.(*Cell)"},
		{"a mutex whose holder waits", ticksPerLook + 1, []string{locked, holding},
			"It may be held by a goroutine that waits for somebody who receives what it sends in actors.(*Cell).Publish (cell.go:99)"},
		{"a mutex whose holder waits beside another method", ticksPerLook + 1, []string{locked, calling, holding},
			"It may be held by a goroutine that waits for somebody who receives what it sends in actors.(*Cell).Publish (cell.go:99)"},
		{"a mutex beside a method that waits elsewhere", ticksPerLook + 1, []string{locked, calling},
			"called by actors.(*Cell).follow (cell.go:140), or whoever locked it has returned without unlocking it"},
		{"whoever holds the mutex may still run", ticksPerLook + 1, []string{locked, running}, ""},
		{"a starved process is patient", 99, []string{running}, ""},
		{"a loop", 100, []string{running}, "supervisor/restart.Policy.Interval runs without an end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := looks(&watchdog{pulse: &pulse{}, maxStallTicks: 100, maxCrawlSeconds: 60, began: time.Now()}, c.looks, c.stacks...)
			var hung *HungError
			if errors.As(err, &hung) != (c.want != "") || hung != nil && !strings.Contains(hung.Cause, c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// A world that does something at each look and whose time hardly goes on is given up as well; one whose time goes on never is.
func TestTimeThatCrawls(t *testing.T) {
	for _, c := range []struct {
		step time.Duration
		hung bool
	}{{time.Millisecond, true}, {2 * time.Second, false}} {
		d := &watchdog{pulse: &pulse{}, maxStallTicks: 100, maxCrawlSeconds: 60, began: time.Now()}
		var err error
		for n := 1; n <= 70 && err == nil; n++ {
			d.pulse.steps.Add(1000)
			d.pulse.at.Store(int64(time.Duration(n) * c.step))
			err = looks(d, 1, running)
		}
		if (err != nil) != c.hung {
			t.Errorf("steps of %s: %v", c.step, err)
		}
	}
}

// Of what is left, the goroutines of the product come before those of the harness that wait for them, however many these are.
func TestTheProductWaitsFirst(t *testing.T) {
	const waiter = `goroutine 20 [sync.WaitGroup.Wait (durable), synctest bubble 1]:
github.com/mcpvisor/mcpvisor/test/chaos/agents.(*Fleet).Close(...)
	/src/test/chaos/agents/fleet.go:109`
	got := describeWaits(parseDump(strings.Join([]string{waiter, waiter, holding}, "\n\n")))
	if len(got) != 2 || !strings.Contains(got[0], "actors.(*Cell).Publish") || !strings.Contains(got[1], "(*Fleet).Close") {
		t.Errorf("%q", got)
	}
}
