package invariant

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// I24: agents of a gateway are kept apart.
//
//   - An answer is about what the agent asked; a progress is that of a call of its own that runs; an update is of a resource that it
//     watches; a notification of a subscription names one of its own.
//   - A question of a server is about a call of the agent that is asked, and about one that runs; over HTTP it comes in the exchange of
//     that call. A server of the legacy era tells the manager about which call it asks only over HTTP. Any other may ask about a call that it
//     still works on though its agent gave it up, and the question may come in the exchange of another request of that agent at that server.
//   - A server that says about which call it asks reaches the agent whose call that is, if the agent can be asked so, and is refused otherwise;
//     question and answer arrive as they were given (i24_inquiries.go).
//   - A question that its server takes back is taken back from the agent, and one about a call that has ended is as well (the agent looks).
//   - A log message is about a call of the agent that gets it, and of a level that the session, or the request of the modern era, wants. Over
//     HTTP an agent gets all of these, before the answer.
//   - A server of the legacy era is asked for the level that an agent wants before the agent's call comes to it, and for none that is finer than all
//     which agents have ever wanted (i24_levels.go).
//   - Who comes without a token, with a wrong one, from a foreign page, with the session or with the state of another principal, is refused.
//   - The credentials of agents reach no server (the harness looks at what servers get).
var apartCheck = newCheck("I24", "agents apart",
	"No answer, notification, question or credential of one agent reaches another, and nobody gets what belongs to another principal.",
	"No agent came.",
	func(c *checker) {
		sessions := c.agentSessions()
		callers := map[string]string{} // the agent of each call
		for _, s := range sessions {
			for _, i := range s.events {
				if e := c.x.Event(i); e.Kind == history.Asked && e.Method == "tools/call" && e.About != "" {
					callers[e.About] = s.agent
				}
			}
		}
		for _, s := range sessions {
			for _, i := range s.events {
				c.checkApart(s, i, callers)
			}
			c.checkLogs(s, callers)
			c.checkLevelAsked(s)
		}
		c.checkLevelsWanted(sessions)
		for i := range c.plan.Servers {
			c.checkInquiries(c.plan.Servers[i].Name, sessions)
		}
	})

// checkApart judges one thing that an agent saw.
func (c *checker) checkApart(s *agentSession, at int, callers map[string]string) {
	e := c.x.Event(at)
	whose := func(call string) string {
		if agent := callers[call]; agent != "" && agent != s.agent {
			return ", which is one of " + agent
		}
		return ""
	}
	switch e.Kind {
	case history.Replied:
		asked := s.asked[e.ID]
		if len(asked) == 0 {
			return // I25
		}
		request := c.x.Event(asked[min(len(asked), len(s.replied[e.ID]))-1])
		c.judged++
		switch {
		case (request.Method == "tools/call" || request.Method == "tasks/result") && e.About != "" && e.About != request.About:
			c.reportViolation("", at, asked, "%s asked for call %s, and was given the answer to call %s at %s%s.", s.agent, request.About, e.About,
				timeText(e.T), whose(e.About))
		case isTrespass(request.Name) && (e.Code == 0 || e.Code/100 == 2):
			c.reportViolation("", at, asked, "%s (%s) asked in a way that must be refused (%s), and was answered at %s with the code %d.", s.agent,
				s.principal, request.Name, timeText(e.T), e.Code)
		}
	case history.Noticed:
		c.judged++
		c.checkNotice(s, at, whose)
	case history.Questioned:
		if !strings.Contains(e.About, "-") || e.About == "a-read" {
			return // the question names no call of an agent
		}
		c.judged++
		if !s.isOpen(c, at, e.About, "tools/call", "tasks/result") && !c.mayBeAnothers(s, at) {
			c.reportViolation("", at, nil, "%s was asked at %s about call %s of the server %s%s: it has no such call under way.", s.agent,
				timeText(e.T), e.About, e.Server, whose(e.About))
			return
		}
		c.checkExchangeOf(s, at)
		c.checkWithdrawn(s, at)
	default:
	}
}

// checkExchangeOf judges that a question about a call came in the exchange of that call: who waits there, and nowhere else, sees it.
func (c *checker) checkExchangeOf(s *agentSession, at int) {
	e := c.x.Event(at)
	for _, i := range s.asked[e.ID] {
		q := c.x.Event(i)
		isAtServer := e.Server != "" && c.serverAsked(s, q) == e.Server
		if e.ID == "" || q.About == e.About || isAtServer && !c.tellsItsCall(e.Server) {
			continue
		}
		c.reportViolation("", at, []int{i}, "%s was asked at %s about its call %s, and the question came in the exchange of its request %s (%s %s).", s.agent,
			timeText(e.T), e.About, e.ID, q.Method, q.About)
		return
	}
}

// mayBeAnothers reports whether a question about a call that is not under way may be taken for one about another request: the call is the
// session's own, its server has not answered it and does not say about which it asks, and the session has a request under way there.
func (c *checker) mayBeAnothers(s *agentSession, at int) bool {
	e := c.x.Event(at)
	call := c.x.Call(e.About)
	if call == nil || call.Server != e.Server || c.tellsItsCall(e.Server) || !s.hasAskedAs(c, e.About, "tools/call") ||
		slices.ContainsFunc(call.Answered, func(i int) bool { return c.x.Event(i).Order < e.Order }) {
		return false
	}
	for _, asked := range s.asked {
		for _, i := range asked {
			q := c.x.Event(i)
			if q.About != e.About && c.serverAsked(s, q) == e.Server && s.isOpen(c, at, q.About, q.Method) {
				return true
			}
		}
	}
	return false
}

// tellsItsCall reports whether a server of the legacy era asks on the stream of the call that it asks about.
func (c *checker) tellsItsCall(server string) bool { return c.serverSpec(server).Kind == messages.HTTP }

// serverAsked returns the server of a request about which its server may ask, "" for any other.
func (c *checker) serverAsked(s *agentSession, q *history.Event) string {
	switch q.Method {
	case "tools/call":
		if call := c.x.Call(q.About); call != nil {
			return call.Server
		}
	case "resources/read":
		return serverOfURI(q.About)
	case "prompts/get", "completion/complete":
		if strings.HasPrefix(q.About, "chaos://") {
			return serverOfURI(q.About)
		}
		return c.serverOfPrompt(s, q.About)
	}
	return ""
}

// checkNotice judges one notification.
func (c *checker) checkNotice(s *agentSession, at int, whose func(string) string) {
	e := c.x.Event(at)
	switch {
	case e.ID != "" && !s.hasAsked(c, e.ID, "subscriptions/listen"):
		c.reportViolation("", at, nil, "%s got %s at %s for the subscription %s, which is none of its own.", s.agent, e.Method, timeText(e.T), e.ID)
	case e.Method == "notifications/tasks" && e.ID != "" && e.About != "" && c.x.Event(s.asked[e.ID][len(s.asked[e.ID])-1]).About != e.About:
		c.reportViolation("", at, nil, "%s got the state of the task of call %s at %s for the subscription %s, which is to another task.", s.agent, e.About, timeText(e.T), e.ID)
	case e.Method == "notifications/progress" && !s.isOpen(c, at, e.About, "tools/call") && !c.isOwnTask(s, at, e.About):
		c.reportViolation("", at, nil, "%s got the progress of %s at %s%s: it has no such call under way.", s.agent, e.About, timeText(e.T), whose(e.About))
	case e.Method == "notifications/resources/updated" && !s.hasAskedAbout(c, e.About) && !s.hasAskedAbout(c, scenario.WholeURI(e.About)):
		c.reportViolation("", at, nil, "%s got an update of %s at %s, which it does not watch.", s.agent, e.About, timeText(e.T))
	}
}

// isOwnTask reports whether a call that a notification is about is one of the agent's, which it has taken over as a task that has not ended before.
func (c *checker) isOwnTask(s *agentSession, at int, about string) bool {
	call := c.x.Call(about)
	return call != nil && call.Tasked >= 0 && c.x.Event(call.Tasked).Agent == s.agent && (len(call.Ends) == 0 || c.x.Event(call.Ends[0]).Order > s.earliestSent(c, at))
}

// earliestSent returns the place in the order of the record from which on the gateway may have sent a notification: with a stream that is resumed
// comes what the gateway has written since the stream broke.
func (s *agentSession) earliestSent(c *checker, at int) int {
	notice := c.x.Event(at)
	resumed := false
	for _, i := range slices.Backward(s.events) {
		switch e := c.x.Event(i); {
		case e.Order > notice.Order:
		case e.Kind == history.StreamBack && e.T == notice.T:
			resumed = true
		case e.Kind == history.StreamCut && resumed:
			return e.Order
		case !resumed && e.T < notice.T:
			return notice.Order
		}
	}
	return notice.Order
}

// isTrespass reports whether a request must be refused for who sent it.
func isTrespass(name string) bool {
	switch name {
	case "foreign-session", "foreign-state", "foreign-task", "no-token", "wrong-token", "foreign-origin":
		return true
	}
	return false
}

// hasAsked reports whether a request with an id and a method was made in the session.
func (s *agentSession) hasAsked(c *checker, id, method string) bool {
	for _, i := range s.asked[id] {
		if c.x.Event(i).Method == method {
			return true
		}
	}
	return false
}

// hasAskedAs reports whether the session has made a request about something with a method.
func (s *agentSession) hasAskedAs(c *checker, about, method string) bool {
	return slices.ContainsFunc(s.events, func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Asked && e.About == about && e.Method == method
	})
}

// hasAskedAbout reports whether the session has ever watched a resource. An update may be under way when the watching ends.
func (s *agentSession) hasAskedAbout(c *checker, uri string) bool {
	return s.hasAskedAs(c, uri, "resources/subscribe") || s.hasAskedAs(c, uri, "subscriptions/listen")
}
