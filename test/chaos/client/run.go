package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/performer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

const (
	// dialTime bounds a dial, listTime a list, closeTime the closing; all are far above what a healthy server needs.
	dialTime, listTime, closeTime = 20 * time.Second, 10 * time.Second, 30 * time.Second
	// askEvery is the time between two questions for the tools. It is no multiple of anything else.
	askEvery = 4*time.Second + 37*time.Millisecond
	// leftTime is how long after the closing what is left is looked for.
	leftTime = 20 * time.Second
	// realTime bounds a run by the clock of the wall: a day takes milliseconds, and only a client that never waits comes near it.
	realTime = 60 * time.Second
)

// Run plays the day of a plan to a client, on the first server of the plan. The record holds what the client does wrong; the error is
// about the plan or the harness itself. It may be called in a test, but not in a bubble of testing/synctest.
func Run(ctx context.Context, plan scenario.Plan, dial Dial) (*history.History, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(plan.Servers) == 0 {
		return nil, errors.New("the plan has no server")
	}
	d := &day{plan: plan, dial: dial}
	var broken error
	ended := make(chan error, 1)
	ready := make(chan struct{}) // closed when d.rec is there
	go func() {
		ended <- sim.Bubble(func() { broken = d.playDay(ready) })
	}()
	select {
	case err := <-ended:
		return d.endHistory(err, broken)
	case <-time.After(realTime):
		// The goroutines of the client go on; nothing but the recorder, which is safe, is touched any more.
		<-ready
		d.rec.Add(history.Event{T: d.lastTime(), Side: history.Harness, Kind: history.Violation, Name: history.Hung,
			Text: fmt.Sprintf("after %s of real time the day of %s has not ended: the client does something without waiting, or waits "+
				"for what is outside of it", realTime, plan.End)})
		return d.rec.History(), nil
	}
}

// day is one run.
type day struct {
	plan   scenario.Plan
	dial   Dial
	rec    *history.Recorder
	start  time.Time
	server *performer.Server
	target *Server

	// mu guards client, which is nil until a dial has succeeded.
	// opened counts the openings.
	mu     sync.Mutex
	client Client
	opened int
	calls  sync.WaitGroup
}

// endHistory completes the record when the bubble has ended.
func (d *day) endHistory(err, broken error) (*history.History, error) {
	if broken != nil {
		return nil, broken
	}
	house := &history.ResourceUsage{}
	var bubble *sim.BubbleError
	switch {
	case errors.As(err, &bubble) && bubble.Panic != nil:
		d.rec.Add(history.Event{T: d.lastTime(), Side: history.Harness, Kind: history.Violation, Name: "panic",
			Text: "the client panicked: " + messages.Line(fmt.Sprint(bubble.Panic), 300)})
	case errors.As(err, &bubble):
		house.Goroutines = len(bubble.Stacks)
		for _, s := range bubble.Stacks {
			house.Left = append(house.Left, firstFrame(s))
		}
	case err != nil:
		return nil, err
	}
	d.rec.Add(history.Event{T: d.lastTime(), Side: history.Harness, Kind: history.Resources, House: house, Text: "after close"})
	return d.rec.History(), nil
}

// firstFrame returns in which function a goroutine waits that is not one of the runtime, from its stack.
func firstFrame(stack string) string {
	for line := range strings.Lines(stack) {
		line = strings.TrimSpace(line)
		if strings.Contains(line, "(") && !strings.HasPrefix(line, "goroutine ") && !strings.HasPrefix(line, "/") &&
			!strings.HasPrefix(line, "internal/") && !strings.HasPrefix(line, "sync.") && !strings.HasPrefix(line, "runtime.") {
			return messages.Line(line[:strings.LastIndex(line, "(")], 120)
		}
	}
	return "a goroutine"
}

// lastTime is the time of the last event.
func (d *day) lastTime() (last time.Duration) {
	for _, e := range d.rec.History().Events {
		last = max(last, e.T)
	}
	return last
}

func (d *day) elapsedTime() time.Duration { return time.Since(d.start) }

// step is something that the plan has at a time.
type step struct {
	at time.Duration
	do func()
}

// playDay is the whole day, inside of the bubble.
func (d *day) playDay(ready chan<- struct{}) error {
	d.start = time.Now()
	d.rec = history.NewRecorder(d.plan, d.elapsedTime)
	close(ready)
	d.rec.Add(history.Event{Side: history.Harness, Kind: history.Resources, House: &history.ResourceUsage{}, Text: "baseline"})
	group, err := performer.Open(d.plan, performer.Options{Memory: true, Record: d.rec.Add, Now: d.elapsedTime})
	if err != nil {
		return err
	}
	defer group.Close()
	name := d.plan.Servers[0].Name
	d.server = group.Server(name)
	d.target = &Server{open: d.openStream}
	if d.plan.Servers[0].Kind != messages.Stdio {
		d.target.URL, d.target.HTTP = d.server.Spec().URL, d.server.HTTPClient()
		defer d.target.HTTP.CloseIdleConnections()
	}
	for _, s := range d.planSteps(group) {
		time.Sleep(s.at - d.elapsedTime())
		s.do()
	}
	d.closeClient()
	time.Sleep(leftTime)
	group.ReleaseEnded()
	return nil
}

// openStream opens the server for the client. A client that opens it without a pause would keep the day in one instant for ever, so
// that every hundredth opening takes a second.
func (d *day) openStream(ctx context.Context) (stream io.ReadWriteCloser, err error) {
	d.mu.Lock()
	d.opened++
	slow := d.opened%100 == 0
	d.mu.Unlock()
	if slow {
		time.Sleep(time.Second)
	}
	return d.server.OpenStream(ctx)
}

// planSteps returns everything that happens at a planned time, in order.
func (d *day) planSteps(group *performer.Group) (all []step) {
	add := func(at time.Duration, do func()) { all = append(all, step{at, do}) }
	add(0, func() { d.calls.Go(d.dialClient) })
	for _, f := range d.plan.Faults {
		if f.Server != "" && f.Server != d.plan.Servers[0].Name {
			continue
		}
		note := func(kind history.Kind) {
			d.rec.Add(history.Event{Side: history.Harness, Kind: kind, Server: f.Server, Fault: f.ID, Name: f.Fault})
		}
		add(f.Begin, func() { note(history.FaultOn); group.Begin(f) })
		if f.End > f.Begin {
			add(min(f.End, d.plan.Heal), func() { note(history.FaultOff); group.End(f) })
		}
	}
	add(d.plan.Heal, func() { d.rec.Add(history.Event{Side: history.Harness, Kind: history.Heal}) })
	s := load.NewSchedule(d.plan)
	for c, ok := s.Next(); ok; c, ok = s.Next() {
		add(c.At, func() { d.calls.Go(func() { d.makeCall(c) }) })
	}
	for at, n := askEvery, 1; at < d.plan.End; at, n = at+askEvery, n+1 {
		add(at, func() { d.calls.Go(func() { d.askTools(n) }) })
	}
	add(d.plan.End, func() {})
	slices.SortStableFunc(all, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return all
}

// dialClient dials until a dial has succeeded or the day has ended.
func (d *day) dialClient() {
	for d.elapsedTime() < d.plan.End {
		ctx, cancel := context.WithTimeout(context.Background(), dialTime)
		c, err := d.dial(ctx, d.target)
		cancel()
		if err == nil {
			d.mu.Lock()
			d.client = c
			d.mu.Unlock()
			return
		}
		time.Sleep(2 * time.Second)
	}
}

// currentClient returns the client, nil before a dial has succeeded.
func (d *day) currentClient() Client {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.client
}

// makeCall makes one call and records how it ends.
func (d *day) makeCall(planned load.Call) {
	c := d.currentClient()
	begin := history.Event{Side: history.Caller, Kind: history.Call, Server: planned.Stream.Server, Call: planned.ID, Tool: planned.Stream.Tool,
		Deadline: d.elapsedTime() + planned.Stream.Timeout}
	d.rec.Add(begin)
	end := begin
	end.Kind, end.Deadline = history.End, 0
	if c == nil {
		end.Outcome, end.Text = messages.OutcomeNotSent, "no dial has succeeded yet"
		d.rec.Add(end)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), planned.Stream.Timeout)
	defer cancel()
	began := time.Now()
	text, err := c.Call(ctx, planned.Stream.Tool, map[string]any{"call": planned.ID})
	end.Took = time.Since(began)
	var result struct {
		Call        string
		Conn, Value int
	}
	switch {
	case err == nil && json.Unmarshal([]byte(text), &result) == nil && result.Call != "":
		end.Outcome, end.Conn, end.Value, end.ID = messages.OutcomeResult, result.Conn, result.Value, result.Call
	case err == nil: // a tool that failed, or one whose result a fault has changed
		end.Outcome, end.Text = messages.OutcomeRejected, messages.Line(text, 200)
	default:
		end.Outcome, end.Text = messages.OutcomeUnknown, messages.Line(err.Error(), 200)
		if k, ok := c.(OutcomeKnower); ok && k.NotSent(err) {
			end.Outcome = messages.OutcomeNotSent
		}
	}
	d.rec.Add(end)
}

// askTools asks the client for its tools and records them.
func (d *day) askTools(n int) {
	c := d.currentClient()
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTime)
	defer cancel()
	began := time.Now()
	names, err := c.Tools(ctx)
	e := history.Event{Side: history.Caller, Kind: history.ReadEnd, Server: d.plan.Servers[0].Name, Call: fmt.Sprintf("tools-%d", n),
		Method: "tools/list", Took: time.Since(began)}
	if err != nil {
		e.Class, e.Text = messages.ClassNetwork, messages.Line(err.Error(), 200)
	} else {
		slices.Sort(names)
		e.Names = names
	}
	d.rec.Add(e)
}

// closeClient closes the client and waits for it and for the calls, at most closeTime.
func (d *day) closeClient() {
	d.rec.Add(history.Event{Side: history.Harness, Kind: history.Closing})
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c := d.currentClient(); c != nil {
			_ = c.Close() // what it says is the client's affair; what is left shows
		}
		d.calls.Wait()
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
