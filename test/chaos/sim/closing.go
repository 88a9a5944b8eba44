package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A closing is how the embedding program ends the manager on a day: how long its context lasts, 0 for no end, and whether that has ended before.
type closing struct {
	limit    time.Duration
	canceled bool
	// begun and returned are the times of the first Close, and err its error.
	begun, returned time.Duration
	err             error
}

// closings are the ways to end, by turns of the seed: with time enough, with a little, with hardly any, and with none.
var closings = []closing{{}, {limit: 2 * time.Second}, {limit: 300 * time.Millisecond}, {canceled: true}}

const (
	// fullDrain is how long calls may go on in a manager that is closed, where its user sets no time.
	fullDrain = 5 * time.Second
	// lastCalls is how long before the end the last calls are made, which are then in flight, and lastCallsMost how many.
	lastCalls     = 15 * time.Millisecond
	lastCallsMost = 2
)

// drain is how long calls may go on: half of the time that there is.
func (c *closing) drain() time.Duration {
	if c.limit > 0 {
		return c.limit / 2
	}
	return fullDrain
}

// planLastCalls plans calls that are in flight when the manager is closed, on days whose end is limited.
func (w *simulation) planLastCalls() {
	w.closing = closings[w.plan.Seed%uint64(len(closings))]
	if w.closing.limit == 0 && !w.closing.canceled {
		return
	}
	w.timeline.planAction(w.plan.End-lastCalls, "", func() {
		made := 0
		w.eachServer(func(h *simServer) {
			st, err := w.manager.ServerStatus(h.server.Name)
			if err != nil || st.Status != messages.Connected || h.server.Connect == messages.Lazy || made == lastCallsMost {
				return
			}
			made++
			w.users.startCall(load.Call{ID: "c0" + strconv.Itoa(made), At: w.virtualNow, Stream: scenario.PlannedLoad{Server: h.server.Name, Tool: scenario.WriteTool, Timeout: time.Minute}})
		})
	})
}

// endManager closes the manager as its user does on this day, and waits for what a Close that ran out of time has left to the background.
func (w *simulation) endManager() error {
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if w.closing.limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, w.closing.limit)
	}
	defer cancel()
	if w.closing.canceled {
		ctx, cancel = context.WithCancel(ctx)
		cancel()
	}
	w.closing.begun = w.elapsedTime()
	w.closing.err = w.manager.Close(ctx)
	w.closing.returned = w.elapsedTime()
	if w.closing.err == nil {
		return nil
	}
	return w.manager.Close(context.Background())
}

// checkClosing judges the end of the manager: Close returns when its context ends, at the latest, and says so; calls that are in flight go on for
// half of the time and no longer, and have their answers if these come by then.
func (w *simulation) checkClosing() {
	w.closing.judge(w.rec.History().Events, func(server, format string, args ...any) {
		w.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I17", Server: server, Text: fmt.Sprintf(format, args...)})
	})
}

// judge is checkClosing for the events of a run.
func (c *closing) judge(events []history.Event, report func(server, format string, args ...any)) {
	took := c.returned - c.begun
	switch {
	case c.limit > 0 && took > c.limit+time.Millisecond || c.canceled && took > time.Millisecond:
		report("", "Close returned after %s, and its context had ended after %s", shortTime(took), c.limit)
	case c.err != nil && !c.canceled && took < c.limit-time.Millisecond:
		report("", "Close gave up after %s, and its context ended after %s: %v", shortTime(took), c.limit, c.err)
	case c.err != nil && !errors.Is(c.err, context.DeadlineExceeded) && !errors.Is(c.err, context.Canceled):
		report("", "Close whose context ended returned another error: %v", c.err)
	}
	begun, received, answered := map[string]time.Duration{}, map[string]bool{}, map[string]time.Duration{} // begun holds the deadlines
	left := map[string]bool{}                                                                              // calls that their callers gave up
	for i := range events {
		switch e := &events[i]; {
		case e.Kind == history.Call && e.Agent == "" && e.T < c.begun:
			begun[e.Call] = cmp.Or(e.Deadline, c.begun+closeTimeout)
		case e.Kind == history.GivenUp:
			left[e.Call] = true
		case e.Kind == history.Received && e.Method == "tools/call" && e.T < c.begun:
			received[e.Call] = true
		case e.Kind == history.Answered && e.Method == "tools/call" && e.Code == 0 && e.Task == "" && begun[e.Call] > 0:
			answered[e.Call] = e.T
		case e.Kind != history.End || begun[e.Call] == 0 || e.T < c.begun:
		case e.T > c.begun+c.drain()+drainSlack:
			report(e.Server, "call %s was in flight when the manager was closed at %s, and ended only at %s: it had %s to go on", e.Call, shortTime(c.begun), shortTime(e.T), c.drain())
		case received[e.Call] && !left[e.Call] && e.Outcome == messages.OutcomeUnknown && e.T < min(c.begun+c.drain(), begun[e.Call])-time.Millisecond:
			report(e.Server, "call %s was with its server when the manager was closed at %s, and was cut off at %s, after %s: it had %s to go on", e.Call, shortTime(c.begun), shortTime(e.T), shortTime(e.T-c.begun), c.drain())
		case answered[e.Call] > c.begun && answered[e.Call] < c.begun+c.drain() && e.Outcome != messages.OutcomeResult && e.Outcome != messages.OutcomeToolError:
			report(e.Server, "call %s was in flight when the manager was closed at %s, had %s, was answered at %s, and ended at %s with %s", e.Call, shortTime(c.begun), c.drain(), shortTime(answered[e.Call]), shortTime(e.T), e.Outcome)
		}
	}
}

// drainSlack is the time in which a call ends whose time is over: a server that is stopped may write what it has.
const drainSlack = 100 * time.Millisecond

// shortTime formats a time as the verdicts do, to the millisecond.
func shortTime(d time.Duration) string { return d.Round(time.Millisecond).String() }
