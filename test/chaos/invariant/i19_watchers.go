package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I19: who watches the manager is told everything, in order.
//
//   - Each event once, by rising numbers; what did not fit is told as a gap of the right size; who waits is told at once, of calls
//     within a millisecond; and the last event comes before the end. The harness sees that while it happens, with two watchers: one
//     who takes everything, and one with room for few who waits.
//   - Each call that reached a server is told when it begins and when it ends, with the outcome that its caller got.
var watcherCheck = newCheck("I19", "watchers are told everything",
	"A watcher is told every event once and in order, of what it missed that it missed it; each call-started is followed by its "+
		"call-ended, with the outcome that the caller got.",
	"No tool was called while somebody watched.",
	func(c *checker) {
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
		if !c.hasClosed() {
			return
		}
		for _, i := range c.x.Order() {
			e := c.x.Event(i)
			if e.Kind != history.CallReported || e.Method == string(messages.EventCallEnded) {
				continue
			}
			if n := began[c.beginKey(e, e.T)]; n > 0 {
				began[c.beginKey(e, e.T)] = 0
				c.reportViolation(e.Server, i, nil, "Who watches was told that a call of tool %s began at %s, and never that it ended.", e.Tool, timeText(e.T))
			}
		}
	})

// callEnd and callBegin are calls that cannot be told apart. In a run of real processes times are no more exact than a moment, so only the
// others count.
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

func (c *checker) endKey(e *history.Event) callEnd {
	t := e.T
	if c.real {
		t = 0
	}
	return callEnd{e.Server, e.Tool, t, e.Outcome}
}

func (c *checker) beginKey(e *history.Event, t time.Duration) callBegin {
	if c.real {
		t = 0
	}
	return callBegin{e.Server, e.Tool, t}
}

// checkReportedEnds compares the ends that were told with those that callers got.
func (c *checker) checkReportedEnds(ends map[callEnd]int) {
	all := map[callEnd]int{}
	for _, call := range c.x.Calls() {
		if call.Begin < 0 || len(call.Ends) == 0 {
			continue
		}
		e := c.x.Event(call.Ends[0])
		key := c.endKey(e)
		all[key]++
		if len(call.Received) == 0 {
			continue // one of a tool that is not in the catalog is refused before anybody is told
		}
		c.judged++
		if ends[key] == 0 {
			c.reportViolation(e.Server, call.Ends[0], []int{call.Begin}, "Call %s of tool %s ended at %s with %s, and who watches was not told so.",
				call.ID, e.Tool, timeText(e.T), e.Outcome)
			return
		}
	}
	for _, i := range c.x.Order() {
		e := c.x.Event(i)
		if e.Kind != history.CallReported || e.Method != string(messages.EventCallEnded) {
			continue
		}
		if key := c.endKey(e); ends[key] > all[key] {
			c.reportViolation(e.Server, i, nil, "Who watches was told at %s that a call of tool %s ended with %s, and no caller got that then.",
				timeText(e.T), e.Tool, e.Outcome)
			return
		}
	}
}
