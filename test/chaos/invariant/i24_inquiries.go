package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// askedBound is how long after its server a question is before an agent that can be asked: the first question of an answer that wants input
// waits 25 ms for others.
const askedBound = 25*time.Millisecond + withdrawnBound

// checkInquiries is I24 for the questions of a server that says about which call it asks. The agent whose call it is has the question before
// it, in the words of the server, if it has declared that it can be asked so; otherwise no agent has it, and the server is refused at once. An
// answer of an agent reaches the server as the agent gave it, also one that refuses.
func (c *checker) checkInquiries(server string, sessions []*agentSession) {
	if !c.tellsItsCall(server) || c.real {
		return
	}
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.Kind != history.Inquiry {
			continue
		}
		call := c.x.Call(e.Call)
		at := slices.IndexFunc(sessions, func(s *agentSession) bool { return s.hasAskedAs(c, e.Call, "tools/call") })
		if call == nil || at < 0 || call.Tasked >= 0 {
			continue
		}
		if s := sessions[at]; c.isUninterrupted(s, i, call, e.T+askedBound) {
			c.judged++
			c.checkConsulted(s, i, sessions)
		}
	}
	for _, s := range sessions {
		for _, i := range s.events {
			if e := c.x.Event(i); e.Kind == history.Advised && e.Server == server {
				if call := c.x.Call(e.About); call != nil && call.Tasked < 0 && c.isUninterrupted(s, i, call, e.T+askedBound) {
					c.judged++
					c.checkAdvice(server, s, i)
				}
			}
		}
	}
}

// isUninterrupted reports whether nothing between an event and a later time ends the exchange of an agent and a server about a
// call: a fault, a command, the end of the call or of the question, or that the agent leaves, or loses a connection.
func (c *checker) isUninterrupted(s *agentSession, at int, call *history.CallRecord, until time.Duration) bool {
	e := c.x.Event(at)
	server := call.Server
	if c.closeTime() <= until || s.end(c) <= until || c.underFault(server, e.T, until) || c.wasCommanded(server, e.T, until) || c.isStreamCut(s, e.T, until) {
		return false
	}
	for _, k := range append(append([]int{call.GivenUp}, call.Ends...), call.Answered...) {
		if k >= 0 && c.x.Event(k).T <= until {
			return false
		}
	}
	for _, k := range c.x.ServerEvents(server) {
		n := c.x.Event(k)
		if n.T <= until && (n.Kind == history.Notified && n.Method == "notifications/cancelled" && n.Call == call.ID || n.T >= e.T && (n.Kind == history.Down || n.Kind == history.Released)) {
			return false
		}
	}
	return true
}

// checkConsulted judges which agent has a question before it.
func (c *checker) checkConsulted(s *agentSession, at int, sessions []*agentSession) {
	q := c.x.Event(at)
	until := q.T + askedBound
	isAskable := slices.Contains(c.x.Event(s.joined).Names, q.Method+suffixOf(q.Name))
	for _, other := range sessions {
		for _, i := range other.events {
			e := c.x.Event(i)
			if e.Kind != history.Consulted || e.Method != q.Method || e.T < q.T || e.T > until {
				continue
			}
			if e.Hash != q.Hash && c.isOtherInquiry(q, e) {
				continue
			}
			// The question for roots says nothing.
			if isMine := e.About == "" && other == s && isAskable; e.About != q.Call && !isMine {
				continue
			}
			switch {
			case !isAskable:
				c.reportViolation(q.Server, i, []int{at}, "The server asked at %s about call %s (%s%s), whose agent %s has not declared that it can be asked so, and %s had the question before it at %s.",
					timeText(q.T), q.Call, q.Method, suffixOf(q.Name), s.agent, other.agent, timeText(e.T))
			case e.Hash != q.Hash && e.About != "":
				c.reportViolation(q.Server, i, []int{at}, "The server asked at %s about call %s (%s), and what %s had before it at %s is not what the server had asked.", timeText(q.T), q.Call,
					q.Method, s.agent, timeText(e.T))
			}
			return
		}
	}
	if isAskable {
		c.reportViolationAt(until, q.Server, at, nil, "The server asked at %s about call %s (%s%s), whose agent %s can be asked so: it was not asked by %s.", timeText(q.T), q.Call, q.Method,
			suffixOf(q.Name), s.agent, timeText(until))
		return
	}
	if !slices.ContainsFunc(c.x.ServerEvents(q.Server), func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Inquired && e.Call == q.Call && e.ID == q.ID && e.Code != 0 && e.T >= q.T && e.T <= until
	}) {
		c.reportViolationAt(until, q.Server, at, nil, "The server asked at %s about call %s (%s%s), whose agent %s cannot be asked so: it was not refused by %s.", timeText(q.T), q.Call, q.Method,
			suffixOf(q.Name), s.agent, timeText(until))
	}
}

// isOtherInquiry reports whether what an agent had before it is another question of the same server about the same call: it may ask twice, the second
// time in the moment in which it has the first answer.
func (c *checker) isOtherInquiry(q, consulted *history.Event) bool {
	return slices.ContainsFunc(c.x.ServerEvents(q.Server), func(i int) bool {
		o := c.x.Event(i)
		return o.Kind == history.Inquiry && o.Call == q.Call && o.ID != q.ID && o.Hash == consulted.Hash
	})
}

// checkAdvice judges that the answer of an agent reaches the server as it is.
func (c *checker) checkAdvice(server string, s *agentSession, at int) {
	a := c.x.Event(at)
	until := a.T + askedBound
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.Kind != history.Inquired || e.Call != a.About || e.Method != a.Method || e.T < a.T || e.T > until {
			continue
		}
		if e.Code != a.Code || e.Hash != a.Hash {
			c.reportViolation(server, i, []int{at}, "%s answered the question about its call %s (%s) at %s with the code %d, and the server was given another answer at %s, with the code %d.", s.agent, a.About,
				a.Method, timeText(a.T), a.Code, timeText(e.T), e.Code)
		}
		return
	}
	c.reportViolationAt(until, server, at, nil, "%s answered the question about its call %s (%s) at %s, and the server did not get the answer by %s.", s.agent, a.About, a.Method, timeText(a.T), timeText(until))
}

// suffixOf writes the kind of a question behind its method.
func suffixOf(kind string) string {
	if kind == "" {
		return ""
	}
	return " " + kind
}
