package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// unsetLevel is the level of a session of the legacy era that has set none.
const unsetLevel = "info"

// wantedLevels returns the ranks of the least severe level that an agent may want for the messages about a request, the lowest and the highest:
// they differ while its session sets another one. In the modern era the request says so; wants is false if it wants none.
func (c *checker) wantedLevels(s *agentSession, request int, from, to time.Duration) (low, high int, wants bool) {
	if c.isModernSession(s) {
		rank := slices.Index(messages.LogLevels, c.x.Event(request).Level)
		return rank, rank, rank >= 0
	}
	low = slices.Index(messages.LogLevels, unsetLevel)
	high = low
	for _, i := range s.events {
		e := c.x.Event(i)
		if e.Kind != history.Asked || e.Method != "logging/setLevel" || e.Name != "" || e.T > to || c.wasRefused(s, e) {
			continue
		}
		rank, answered := slices.Index(messages.LogLevels, e.Level), c.answeredAt(s, i)
		switch {
		case answered < 0 || answered >= from-c.instantBound():
			low, high = min(low, rank), max(high, rank)
		default:
			low, high = rank, rank
		}
	}
	return low, high, true
}

// answeredAt returns when a request of an agent was answered, below 0 if it was not.
func (c *checker) answeredAt(s *agentSession, asked int) time.Duration {
	e := c.x.Event(asked)
	for n, i := range s.asked[e.ID] {
		if i == asked && n < len(s.replied[e.ID]) {
			return c.x.Event(s.replied[e.ID][n]).T
		}
	}
	return -1
}

// checkLogs is I24 for log messages: one that an agent gets is about a call of its own, and of a level that it wants; and over HTTP, where a
// message names its call by its exchange, it gets all of these, before the answer.
func (c *checker) checkLogs(s *agentSession, callers map[string]string) {
	for _, i := range s.events {
		switch e := c.x.Event(i); {
		case e.Kind == history.Noticed && e.Method == "notifications/message" && e.About != "":
			c.judged++
			c.checkLogNotice(s, i, callers)
		case e.Kind == history.Asked && e.Method == "tools/call" && e.About != "":
			c.checkLogsOfCall(s, i)
		}
	}
}

// checkLogNotice judges one message that an agent got.
func (c *checker) checkLogNotice(s *agentSession, at int, callers map[string]string) {
	e := c.x.Event(at)
	if callers[e.About] != s.agent && !c.mayComeInAnother(s, e) {
		c.reportViolation("", at, nil, "%s got a log message about call %s at %s, which is none of its own.", s.agent, e.About, timeText(e.T))
		return
	}
	asked := slices.IndexFunc(s.events, func(i int) bool {
		q := c.x.Event(i)
		return q.Kind == history.Asked && q.Method == "tools/call" && q.About == e.About
	})
	call := c.x.Call(e.About)
	if asked < 0 || call == nil || c.isModernSession(s) && !c.tellsItsCall(call.Server) {
		return // a message about a call that was given up may come in another request, which has a level of its own
	}
	low, _, wants := c.wantedLevels(s, s.events[asked], e.T, e.T)
	if rank := slices.Index(messages.LogLevels, e.Level); !wants || rank < low {
		c.reportViolation(call.Server, at, []int{s.events[asked]}, "%s got a log message of the level %s at %s (call %s), and wants %s.", s.agent, e.Level, timeText(e.T), e.About,
			levelText(low, wants))
	}
}

// mayComeInAnother reports whether a log message may come to a session although it is about the call of another agent: that agent belongs to the
// same principal and gave the call up, and its server does not say which of the principal's requests it writes about.
func (c *checker) mayComeInAnother(s *agentSession, e *history.Event) bool {
	call := c.x.Call(e.About)
	if call == nil || call.Begin < 0 || !c.isModernSession(s) || c.tellsItsCall(call.Server) || c.x.Event(call.Begin).By != s.principal {
		return false
	}
	left, ok := c.x.Time(call.GivenUp)
	return ok && left <= e.T
}

// levelText returns the level that an agent has asked for, as a report names it.
func levelText(low int, wants bool) string {
	if !wants {
		return "none"
	}
	return messages.LogLevels[low] + " and above"
}

// checkLogsOfCall judges that an agent got what its server wrote about a call.
func (c *checker) checkLogsOfCall(s *agentSession, asked int) {
	q := c.x.Event(asked)
	call := c.x.Call(q.About)
	if call == nil || !c.tellsItsCall(call.Server) || len(call.Received) != 1 || len(call.Answered) != 1 || len(call.Ends) != 1 || call.GivenUp >= 0 ||
		c.x.Event(call.Ends[0]).Outcome != messages.OutcomeResult {
		return
	}
	replied := slices.IndexFunc(s.events, func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Replied && e.ID == q.ID && e.About == q.About && e.Name == ""
	})
	if replied < 0 || c.underFault(call.Server, q.T, c.x.Event(s.events[replied]).T) {
		return
	}
	for _, i := range c.x.ServerEvents(call.Server) {
		e := c.x.Event(i)
		if e.Kind != history.Notified || e.Method != "notifications/message" || e.Call != q.About {
			continue
		}
		_, high, wants := c.wantedLevels(s, asked, q.T, c.x.Event(s.events[replied]).T)
		if rank := slices.Index(messages.LogLevels, e.Level); !wants || rank < high {
			continue
		}
		c.judged++
		if !slices.ContainsFunc(s.events[:replied], func(k int) bool {
			n := c.x.Event(k)
			return n.Kind == history.Noticed && n.Method == e.Method && n.About == e.Call && n.Level == e.Level
		}) {
			c.reportViolation(call.Server, s.events[replied], []int{asked, i}, "The server wrote a log message of the level %s about call %s at %s; %s wants %s, and had not got it when the call was answered at %s.",
				e.Level, q.About, timeText(e.T), s.agent, levelText(high, wants), timeText(c.x.Event(s.events[replied]).T))
		}
	}
}
