package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

const (
	// leftTime is how long after the closing what is left is looked for in virtual time, realLeftTime in real time.
	leftTime, realLeftTime = 20 * time.Second, 3 * time.Second
	// realTime bounds by the clock of the wall how long a run may go on without an event at a later time of its day, and mostRealTimes
	// how often so long it may take in all. A day takes milliseconds: only a client that never waits comes near it, or a machine
	// that has much else to do.
	realTime      = 60 * time.Second
	mostRealTimes = 10
)

// ErrFrozen is the error of [Run] if the client stops the virtual time, so that the day can only be played by [RunReal].
type ErrFrozen = sim.FrozenError

// Run plays the day of a plan to a client, in virtual time. The record holds what the client does wrong; the error is about the plan or
// the harness itself, or an *[ErrFrozen]. It may be called in a test, but not in a bubble of testing/synctest.
func Run(ctx context.Context, plan scenario.Plan, dial Dial) (*history.History, error) {
	d, err := newDay(ctx, plan, dial)
	if err != nil {
		return nil, err
	}
	var broken error
	ended := make(chan error, 1)
	ready := make(chan struct{}) // closed when d.rec is there
	go func() {
		ended <- sim.BubbleUntilFrozen(func() { broken = d.playDay(ready, leftTime) })
	}()
	began := time.Now()
	if err, ok := awaitEnd(ended, realTime, func() time.Duration { <-ready; return d.lastTime() }); ok {
		if frozen := (*ErrFrozen)(nil); errors.As(err, &frozen) {
			return nil, frozen
		}
		return d.endHistory(err, broken)
	}
	return d.hungHistory(ready, "after "+time.Since(began).Round(time.Second).String()+" of real time the day of "+plan.End.String()+
		" has not ended: "+hungText), nil
}

// hungText says what can have kept a day from its end.
const hungText = "the client does something without waiting, or this machine is far too slow (play it again when it has less to do)"

// awaitEnd waits for the end of a run while the time of its day goes on, and at most mostRealTimes. It reports false for a run that stands
// still for longer than patience.
func awaitEnd(ended <-chan error, patience time.Duration, now func() time.Duration) (err error, ok bool) {
	last := time.Duration(-1)
	for range mostRealTimes {
		select {
		case err := <-ended:
			return err, true
		case <-time.After(patience):
		}
		at := now()
		if at <= last {
			break
		}
		last = at
	}
	return nil, false
}

// RunReal is [Run] in real time, for a client that stops the virtual one. A day takes as long as its plan says; many may be played at once.
func RunReal(ctx context.Context, plan scenario.Plan, dial Dial) (*history.History, error) {
	d, err := newDay(ctx, plan, dial)
	if err != nil {
		return nil, err
	}
	var broken error
	ended := make(chan []string, 1)
	ready := make(chan struct{})
	go func() {
		ended <- goroutinesLeftBy(func() { broken = d.playDay(ready, realLeftTime) })
	}()
	select {
	case left := <-ended:
		var err error
		if len(left) > 0 {
			err = &sim.BubbleError{Text: "goroutines are left", Stacks: left}
		}
		return d.endHistory(err, broken)
	case <-time.After(plan.End + closeTime + realTime):
		return d.hungHistory(ready, "the day of "+plan.End.String()+" has not ended: "+hungText), nil
	}
}

// hungHistory is the record of a day that does not end. The goroutines of the client go on; nothing but the recorder, which is safe, is
// touched any more.
func (d *day) hungHistory(ready <-chan struct{}, text string) *history.History {
	<-ready
	d.rec.Add(history.Event{T: d.lastTime(), Side: history.Harness, Kind: history.Violation, Name: history.Hung, Text: text})
	return d.rec.History()
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
		d.rec.Add(history.Event{T: d.lastTime(), Side: history.Harness, Kind: history.Violation, Name: Panicked,
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
			!strings.HasPrefix(line, "internal/") && !strings.HasPrefix(line, "sync.") && !strings.HasPrefix(line, "runtime.") && !strings.HasPrefix(line, "testing.") {
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
