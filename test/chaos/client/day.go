package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/performer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

const (
	// dialTime bounds a dial, listTime a list, closeTime the closing; all are far above what a healthy server needs.
	dialTime, listTime, closeTime = 20 * time.Second, 10 * time.Second, 30 * time.Second
	// askEvery is the time between two questions for the tools. It is no multiple of anything else.
	askEvery = 4*time.Second + 37*time.Millisecond
)

// day is one run: the servers of a plan, and a client of each.
type day struct {
	plan    scenario.Plan
	dial    Dial
	rec     *history.Recorder
	start   time.Time
	targets map[string]*target
	watch   callWatch
	// work counts dials, calls, lists and restarts, all of which must end once the clients are closed.
	work sync.WaitGroup
}

// newDay checks that a day can be played.
func newDay(ctx context.Context, plan scenario.Plan, dial Dial) (*day, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(plan.Servers) == 0 {
		return nil, errors.New("the plan has no server")
	}
	return &day{plan: plan, dial: dial, targets: map[string]*target{}}, nil
}

func (d *day) elapsedTime() time.Duration { return time.Since(d.start) }

// step is something that the plan has at a time.
type step struct {
	at time.Duration
	do func()
}

// playDay is the whole day. What is left of the clients is looked for some time after their closing.
func (d *day) playDay(ready chan<- struct{}, leftFor time.Duration) error {
	d.start = time.Now()
	d.rec = history.NewRecorder(d.plan, d.elapsedTime)
	close(ready)
	d.rec.Add(history.Event{Side: history.Harness, Kind: history.Resources, House: &history.ResourceUsage{}, Text: "baseline"})
	group, err := performer.Open(d.plan, performer.Options{Memory: true, Record: d.recordServer, Now: d.elapsedTime})
	if err != nil {
		return err
	}
	defer group.Close()
	for _, s := range d.plan.Servers {
		t := newTarget(d, s, group.Server(s.Name))
		d.targets[s.Name] = t
		defer t.closeNetwork()
	}
	for _, s := range d.planSteps(group) {
		time.Sleep(s.at - d.elapsedTime())
		s.do()
	}
	d.closeClients()
	time.Sleep(leftFor)
	group.ReleaseEnded()
	return nil
}

// recordServer records what a server saw, and gives up the calls whose callers wait for that.
func (d *day) recordServer(e history.Event) {
	d.rec.Add(e)
	d.watch.noteEvent(e)
}

// planSteps returns everything that happens at a planned time, in order.
func (d *day) planSteps(group *performer.Group) (all []step) {
	add := func(at time.Duration, do func()) { all = append(all, step{at, do}) }
	for _, s := range d.plan.Servers {
		t := d.targets[s.Name]
		add(0, func() { d.goClient(t.dialClient) })
		for at, n := askEvery, 1; at < d.plan.End; at, n = at+askEvery, n+1 {
			add(at, func() { d.goClient(func() { t.askTools(n) }) })
		}
	}
	for _, f := range d.plan.Faults {
		note := func(kind history.Kind) {
			d.rec.Add(history.Event{Side: history.Harness, Kind: kind, Server: f.Server, Fault: f.ID, Name: f.Fault})
		}
		add(f.Begin, func() { note(history.FaultOn); group.Begin(f) })
		if f.End > f.Begin {
			add(min(f.End, d.plan.Heal), func() { note(history.FaultOff); group.End(f) })
		}
	}
	add(d.plan.Heal, func() { d.rec.Add(history.Event{Side: history.Harness, Kind: history.Heal}) })
	for _, c := range d.plan.Commands {
		if t := d.targets[c.Server]; t != nil && c.Do == Restart {
			add(c.At, func() { d.goClient(func() { t.restartClient(c.ID) }) })
		}
	}
	s := load.NewSchedule(d.plan)
	for c, ok := s.Next(); ok; c, ok = s.Next() {
		t := d.targets[c.Stream.Server]
		add(c.At, func() { d.goClient(func() { t.makeCall(c) }) })
	}
	add(d.plan.End, func() {})
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return all
}

// Panicked is the name of the violation of a client that panics in one of its methods, or ends its goroutine there.
const Panicked = "panic"

// goClient calls f, which uses the client, in a goroutine. A panic, and an end of the goroutine, become part of the record.
func (d *day) goClient(f func()) {
	d.work.Go(func() {
		returned := false
		defer func() {
			var text string
			cause := "\npanic("
			switch v := recover(); {
			case v != nil:
				text = "the client panicked: " + messages.Line(fmt.Sprint(v), 300)
			case !returned:
				text, cause = "the client ended its goroutine (runtime.Goexit), as t.Fatal does: let the method return an error", "\nruntime.Goexit("
			default:
				return
			}
			// What stands below the line of the cause is where it happened.
			_, below, _ := strings.Cut(string(debug.Stack()), cause)
			_, below, _ = strings.Cut(below, "\n\t")
			_, below, _ = strings.Cut(below, "\n")
			d.rec.Add(history.Event{Side: history.Harness, Kind: history.Violation, Name: Panicked, Text: text + ", in " + firstFrame(below)})
		}()
		f()
		returned = true
	})
}

// closeClients closes the clients, all at once, and waits for them and for the calls, at most closeTime.
func (d *day) closeClients() {
	d.rec.Add(history.Event{Side: history.Harness, Kind: history.Closing})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, t := range d.targets {
			if c := t.currentClient(); c != nil {
				d.goClient(func() { _ = c.Close() }) // what it says is the client's affair; what is left shows
			}
		}
		d.work.Wait()
	}()
	e := history.Event{Side: history.Harness, Kind: history.Closed}
	t := time.NewTimer(closeTime)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		e.Text = fmt.Sprintf("after %s the client has not closed, or calls have not ended", closeTime)
	}
	d.rec.Add(e)
}
