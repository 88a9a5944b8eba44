package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkGivenUp is I2 for a call that its caller gives up: the call ends at once as cancelled, not sent if no server had
// received it, otherwise with an unknown outcome (see I3). An answer, or another end, of the same instant may come first.
func (c *checker) checkGivenUp(call *history.CallRecord) {
	if call.GivenUp < 0 {
		c.checkNotGivenUp(call)
		return
	}
	begin, givenUp := c.x.Event(call.Begin), c.x.Event(call.GivenUp)
	if len(call.Ends) == 0 {
		if due := givenUp.T + c.instantBound(); c.endTime() > due && !c.real {
			c.judged++
			c.reportViolationAt(due, call.Server, call.GivenUp, []int{call.Begin}, "The caller of call %s of tool %s gave it up at %s, and at %s it had not "+
				"ended.", call.ID, begin.Tool, timeText(givenUp.T), timeText(due))
		}
		return
	}
	end := c.x.Event(call.Ends[0])
	if end.T < givenUp.T || c.real && c.underFault("", begin.T, end.T) {
		return
	}
	if end.T > givenUp.T+c.instantBound() {
		c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, call.GivenUp}, "The caller of call %s of tool %s gave it up at %s, and was told only "+
			"at %s, with %s.", call.ID, begin.Tool, timeText(givenUp.T), timeText(end.T), end.Outcome)
		return
	}
	if end.Class == messages.ClassCanceled && (end.Outcome == messages.OutcomeNotSent || end.Outcome == messages.OutcomeUnknown) ||
		c.mayHaveEnded(call, begin, givenUp) {
		return
	}
	c.reportViolation(call.Server, call.Ends[0], []int{call.Begin, call.GivenUp}, "The caller of call %s of tool %s gave it up at %s, and was told, at %s, "+
		"that it ended with %s (%s): nothing else had happened to it.", call.ID, begin.Tool, timeText(givenUp.T), timeText(end.T), end.Outcome,
		describeClass(end.Class))
}

// checkNotGivenUp is I2 for a call whose caller has not given it up: it is not said to have ended for that. A call of an
// agent ends so with its session.
func (c *checker) checkNotGivenUp(call *history.CallRecord) {
	if len(call.Ends) == 0 || c.real {
		return
	}
	begin, end := c.x.Event(call.Begin), c.x.Event(call.Ends[0])
	if strings.Contains(end.Text, "the caller gave up") && begin.Agent == "" && end.T < c.closeTime()-c.skew {
		c.reportViolation(call.Server, call.Ends[0], []int{call.Begin}, "The caller of call %s of tool %s waited for its end, and was told at %s that the caller had given it up: %s", call.ID,
			begin.Tool, timeText(end.T), end.Text)
	}
}

// wasGivenUp reports whether the caller of a call had given it up by a time, or was an agent whose session had ended.
func (c *checker) wasGivenUp(call *history.CallRecord, t time.Duration) bool {
	at, ok := c.x.Time(call.GivenUp)
	return ok && at <= t || c.hasParted(call, t)
}

// hasParted reports whether a session of the agent that made a call ended between its begin and a time. The calls of the session end
// with it; an agent that comes back makes others.
func (c *checker) hasParted(call *history.CallRecord, t time.Duration) bool {
	if call.Begin < 0 || c.x.Event(call.Begin).Agent == "" {
		return false
	}
	begin := c.x.Event(call.Begin)
	return slices.ContainsFunc(c.x.ServerEvents(""), func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Parted && e.Agent == begin.Agent && e.T >= begin.T && e.T <= t
	})
}

// mayHaveEnded reports whether something else may have ended a call at the time at which its caller gave it up.
func (c *checker) mayHaveEnded(call *history.CallRecord, begin, givenUp *history.Event) bool {
	from := givenUp.T - c.skew
	if begin.Deadline > 0 && begin.Deadline <= givenUp.T+c.skew || begin.T >= from || c.underFault(call.Server, from, givenUp.T) || givenUp.T >= c.closeTime()-c.skew {
		return true
	}
	return slices.ContainsFunc(c.x.ServerEvents(call.Server), func(i int) bool {
		e := c.x.Event(i)
		if e.T < begin.T || e.T > givenUp.T+c.skew {
			return false
		}
		// A call that waits to be sent a second time ends with the reason of its first failure.
		if e.Kind == history.Down || e.Kind == history.Answered && e.Call == call.ID {
			return true
		}
		// A connection that seems open, and is not, has no Down: the call that may run twice was lost when the manager released it.
		if e.Kind == history.Released && c.mayRepeat(call.Server, begin.Tool) && c.wasReceivedOn(call, e.Conn) {
			return true
		}
		// A call whose session was lost was not accepted, and waits for the next one, whatever it does.
		if e.Kind == history.Phase && e.Step == messages.Restarting && e.Class == messages.ClassSession {
			return true
		}
		// The manager says that it has lost the connection before it releases it.
		if e.Kind == history.Phase && e.Step == messages.Restarting && e.Class != messages.ClassNone && c.mayRepeat(call.Server, begin.Tool) && c.wasReceivedBefore(call, e.T) {
			return true
		}
		switch e.Kind {
		case history.Answered:
			// An event of a task arrives in the answer to another request, which names no call.
			return e.T >= from && e.Call == ""
		case history.Refused, history.Command, history.Done, history.Phase, history.Removed:
			return e.T >= from
		default:
			return false
		}
	})
}

// wasReceivedOn reports whether a server received a call on the connection with a number.
func (c *checker) wasReceivedOn(call *history.CallRecord, conn int) bool {
	return slices.ContainsFunc(call.Received, func(i int) bool { return c.x.Event(i).Conn == conn })
}

// wasReceivedBefore reports whether a server had received a call by a time.
func (c *checker) wasReceivedBefore(call *history.CallRecord, t time.Duration) bool {
	return slices.ContainsFunc(call.Received, func(i int) bool { return c.x.Event(i).T <= t })
}

// describeClass names a class of errors for a reason.
func describeClass(class messages.Class) string {
	if class == messages.ClassNone {
		return "no error"
	}
	return string(class)
}
