package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// left is I2 for a caller who gives his call up: he is told at once, that he did so, and whether it may run. It was not sent if no server
// had received it, and is unknown otherwise; see I3. An answer, or an end, of the same instant may come first.
func (c *court) left(call *history.CallRecord) {
	if call.Left < 0 {
		return
	}
	begin, gone := c.x.Event(call.Begin), c.x.Event(call.Left)
	if len(call.Ends) == 0 {
		if due := gone.T + c.atOnce(); c.end() > due && !c.real {
			c.looked++
			c.violatedAt(due, call.Server, call.Left, []int{call.Begin}, "The caller of call %s of tool %s gave it up at %s, and at %s it had not "+
				"ended.", call.ID, begin.Tool, clock(gone.T), clock(due))
		}
		return
	}
	end := c.x.Event(call.Ends[0])
	if end.T < gone.T || c.real && c.under("", begin.T, end.T) {
		return
	}
	if end.T > gone.T+c.atOnce() {
		c.violated(call.Server, call.Ends[0], []int{call.Begin, call.Left}, "The caller of call %s of tool %s gave it up at %s, and was told only "+
			"at %s, with %s.", call.ID, begin.Tool, clock(gone.T), clock(end.T), end.Outcome)
		return
	}
	if end.Class == messages.ClassCanceled && (end.Outcome == messages.OutcomeNotSent || end.Outcome == messages.OutcomeUnknown) ||
		c.elseEnded(call, begin, gone) {
		return
	}
	c.violated(call.Server, call.Ends[0], []int{call.Begin, call.Left}, "The caller of call %s of tool %s gave it up at %s, and was told, at %s, "+
		"that it ended with %s (%s): nothing else had happened to it.", call.ID, begin.Tool, clock(gone.T), clock(end.T), end.Outcome,
		describeClass(end.Class))
}

// gaveUp reports whether a call had ended, at a time, because its caller gave it up.
func (c *court) gaveUp(call *history.CallRecord, t time.Duration) bool {
	at, ok := c.x.Time(call.Left)
	return ok && at <= t
}

// elseEnded reports whether something else may have ended a call in the moment in which its caller gave it up.
func (c *court) elseEnded(call *history.CallRecord, begin, gone *history.Event) bool {
	from := gone.T - c.moment
	if begin.Deadline > 0 && begin.Deadline <= gone.T+c.moment || begin.T >= from || c.under(call.Server, from, gone.T) || gone.T >= c.closing()-c.moment {
		return true
	}
	return slices.ContainsFunc(c.x.Of(call.Server), func(i int) bool {
		e := c.x.Event(i)
		if e.T < begin.T || e.T > gone.T+c.moment {
			return false
		}
		// Who waits to be sent a second time is told why it was not well the first time.
		if e.Kind == history.Down || e.Kind == history.Answered && e.Call == call.ID {
			return true
		}
		switch e.Kind {
		case history.Answered:
			return e.T >= from && e.Call == "" // what is said of a task is said in answers to other requests
		case history.Refused, history.Command, history.Done, history.Phase, history.Removed:
			return e.T >= from
		default:
			return false
		}
	})
}

func describeClass(class messages.Class) string {
	if class == messages.ClassNone {
		return "no error"
	}
	return string(class)
}
