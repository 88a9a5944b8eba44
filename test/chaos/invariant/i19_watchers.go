package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I19: a watcher of the manager gets every event, in order.
//
//   - It gets each event once, by rising numbers; events that did not fit its buffer become a gap of the right size; a waiting
//     watcher gets an event at once, and those of calls within a millisecond; and the last event comes before the end. The
//     harness checks that while it happens, with two watchers: one that takes every event, and one with room for few events
//     that waits.
//   - The manager publishes the begin and the end of each call that reached a server, with the outcome that its caller got.
//     This check compares those events with the calls.
var watcherCheck = newCheck("I19", "watchers are told everything",
	"A watcher is told every event once and in order, of what it missed that it missed it; each call-started is followed by its "+
		"call-ended, with the outcome that the caller got.",
	"No tool was called while somebody watched.",
	func(c *checker) {
		// began counts the call-started events without their call-ended: an end carries its duration, which leads to its begin.
		ends, began := map[callEnd]int{}, map[callBegin]int{}
		watched := false
		for i := range c.h.Events {
			e := &c.h.Events[i]
			if e.Kind != history.CallReported {
				continue
			}
			watched = true
			if e.Method == string(messages.EventCallEnded) {
				ends[c.endKey(e)]++
				began[c.beginKey(e, e.T-e.Took)]--
			} else {
				began[c.beginKey(e, e.T)]++
			}
		}
		if !watched {
			return
		}
		c.checkReportedEnds(ends)
		// Before Close a call may still be running.
		if !c.hasClosed() {
			return
		}
		for _, i := range c.x.Order() {
			e := c.x.Event(i)
			if e.Kind != history.CallReported || e.Method == string(messages.EventCallEnded) {
				continue
			}
			if n := began[c.beginKey(e, e.T)]; n > 0 {
				// One violation per key is enough.
				began[c.beginKey(e, e.T)] = 0
				c.reportViolation(e.Server, i, nil, "The watchers were told that a call of tool %s began at %s, and never that it ended.", e.Tool, timeText(e.T))
			}
		}
	})

// A callEnd and a callBegin are the keys of calls that cannot be told apart. In a run of real processes the recorded times
// differ by scheduling, so t is 0 there and the counts alone must agree.
type (
	callEnd struct {
		server, tool string
		t            time.Duration
		outcome      messages.Outcome
	}
	callBegin struct {
		server, tool string
		t            time.Duration
	}
)

// endKey returns the key of a call's end, for the caller's event and the watcher's alike.
func (c *checker) endKey(e *history.Event) callEnd {
	t := e.T
	if c.real {
		t = 0
	}
	return callEnd{e.Server, e.Tool, t, e.Outcome}
}

// beginKey returns the key of a call that began at t.
func (c *checker) beginKey(e *history.Event, t time.Duration) callBegin {
	if c.real {
		t = 0
	}
	return callBegin{e.Server, e.Tool, t}
}

// toldInGap returns what who watches was told of the end of a call whose agent had no connection to be told over then, or asked for a task. The
// beginning of what was told, and its outcome, are those of the call; a task may have an outcome after its connection was lost.
func (c *checker) toldInGap(call *history.CallRecord) (callEnd, bool) {
	begin, end, known := c.x.Event(call.Begin), c.x.Event(call.Ends[0]), c.endKnown(call)
	admitted := begin.T // or when its server received it: a call that waits begins for watchers when it is sent
	if len(call.Received) > 0 {
		admitted = c.x.Event(call.Received[0]).T
	}
	if reported := c.reportedEnd(call); reported != nil && (reported.Outcome == end.Outcome || reported.Outcome == messages.OutcomeUnknown || call.GivenUp >= 0 || c.hasWaited(call)) {
		return c.endKey(reported), true
	}
	if c.real || known == end.T {
		return callEnd{}, false
	}
	for _, i := range c.x.ServerEvents(call.Server) {
		e := c.x.Event(i)
		if e.Kind == history.CallReported && e.Method == string(messages.EventCallEnded) && e.T >= known && e.T <= end.T &&
			(e.T-e.Took == begin.T || e.T-e.Took == admitted) && e.Tool == end.Tool && e.Outcome == end.Outcome {
			return c.endKey(e), true
		}
	}
	return callEnd{}, false
}

// checkReportedEnds compares the ends that watchers got with those that callers got, in both directions.
func (c *checker) checkReportedEnds(ends map[callEnd]int) {
	all := map[callEnd]int{}
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || len(call.Ends) == 0 {
			continue
		}
		e := c.x.Event(call.Ends[0])
		key := c.endKey(e)
		if inGap, ok := c.toldInGap(call); ok {
			key = inGap
		}
		all[key]++
		if len(call.Received) == 0 {
			continue // a call of a tool that is not in the catalog is refused before the manager publishes an event
		}
		c.judged++
		if ends[key] == 0 {
			c.reportViolation(e.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s ended at %s with %s, and no watcher was told of that end.",
				call.ID, e.Tool, timeText(e.T), e.Outcome)
			return
		}
	}
	// A published end without a call would be an invention of the manager.
	for _, i := range c.x.Order() {
		e := c.x.Event(i)
		if e.Kind != history.CallReported || e.Method != string(messages.EventCallEnded) {
			continue
		}
		if key := c.endKey(e); ends[key] > all[key] {
			c.reportViolation(e.Server, i, nil, "The watchers were told at %s that a call of tool %s ended with %s, and no caller got that end then.",
				timeText(e.T), e.Tool, e.Outcome)
			return
		}
	}
}
