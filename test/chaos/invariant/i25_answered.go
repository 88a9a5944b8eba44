package invariant

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// agentAnswerBound bounds the answer to what an agent asks, calls excepted: the minute that a server may take, three times because a gateway
// lists resources and templates before it reads.
const agentAnswerBound = 3*time.Minute + time.Second

// sessionNotFound is the code with which the endpoint answers a request in a session that it does not know.
const sessionNotFound = -32001

// wrongRequests are the codes of the errors for what is wrong on purpose.
var wrongRequests = map[string]int{
	"unknown-method": -32601, "unknown-tool": -32602, "bad-cursor": -32602, "bad-params": -32602, "unknown-task": -32602, "foreign-task": -32602,
	"used-state": -32602, "before-initialize": -32600, "initialized-twice": -32600, "id-in-use": -32600,
}

// I25: every request of an agent has one answer, or none once the agent has taken it back.
//
//   - Not two, and none that was not asked for.
//   - Not none, unless the session ended before, or the agent took the request back: within the time that its server has, and for calls of tools as I2 says.
//   - A wrong request gets the protocol's own error: methods, params, cursors, tasks and ids; over HTTP the status (the agent looks). The id of a request that
//     was taken back is free.
//   - An agent reads a state of the server from the time of its request, and is refused nothing that the gateway or the server can give; a list has
//     something of each server that has something (i25_reads.go), and definitions and proposals are the server's own (the agent looks).
//   - A call that its agent has taken over as a task is found as long as it lives, its agent has the result soon after its end, which is the end of the call,
//     and the server of one that was cancelled is told so. A task has one result, whoever asks for it, and ends once (the agent looks).
var answeredCheck = newCheck("I25", "one answer per request",
	"Every request of an agent has exactly one answer, or none once the agent has taken it back, and what is wrong with a request is answered with the error of the protocol.",
	"No agent came.",
	func(c *checker) {
		c.checkTasks()
		for _, s := range c.agentSessions() {
			for id, replied := range s.replied {
				if asked := s.asked[id]; len(replied) > len(asked) {
					at := replied[len(asked)]
					c.reportViolation("", at, append(asked, replied...), "%s got an answer with the id %s at %s (%s), and had asked %d times with that id.",
						s.agent, id, timeText(c.x.Event(at).T), c.x.Event(at).Text, len(asked))
				}
			}
			for id, asked := range s.asked {
				for n, i := range asked {
					c.judged++
					if n < len(s.replied[id]) {
						c.checkReply(s, i, s.replied[id][n])
						c.checkAgentRead(s, i, s.replied[id][n])
						continue
					}
					c.checkUnanswered(s, i)
				}
			}
		}
	})

// checkReply judges an answer.
func (c *checker) checkReply(s *agentSession, asked, replied int) {
	q, r := c.x.Event(asked), c.x.Event(replied)
	// Of a view of one server nobody knows which tools it has while it is away: such a call is not sent, and that is said.
	// A session that nobody has used for a while is forgotten: the harness judges whether that was so.
	if r.Code == sessionNotFound {
		return
	}
	c.checkTaskKnown(s, asked, replied)
	notSent := q.Name == "unknown-tool" && s.view != "" && r.Outcome == messages.OutcomeNotSent
	// A view of a server that has been removed refuses every request alike.
	isAway := r.Code == -32602 && s.view != "" && (c.mayBeAbsent(s.view, q.T, r.T) || c.mayBeHidden(s, q.T, r.T))
	if want := wrongRequests[q.Name]; want != 0 && r.Code != want && !notSent && !isAway {
		got := "a result"
		if r.Code != 0 {
			got = fmt.Sprintf("the code %d", r.Code)
		}
		c.reportViolation("", replied, []int{asked}, "%s sent a %s that is wrong on purpose (%s): it had to be refused with the code %d, and was answered at %s with %s.",
			s.agent, cmp.Or(q.Method, "request"), q.Name, want, timeText(r.T), got)
	}
	// The id of what was taken back is free.
	if q.Name == "id-of-the-cancelled" && r.Code == -32600 {
		c.reportViolation("", replied, []int{asked}, "%s took a request back and used its id (%s) again for %s, and was refused at %s.", s.agent, q.ID, q.Method, timeText(r.T))
	}
	if r.Name == history.NoAnswer {
		c.reportViolation("", replied, []int{asked}, "The exchange of %s with its request %s (%s) was over at %s, and held no answer.", s.agent, q.ID, q.Method,
			timeText(r.T))
	}
	// What stands for no answer to a request that was taken back comes when the agent waits no longer.
	if bound := c.answerBound(q); bound > 0 && r.T > bound && r.Name != history.TakenBack {
		c.reportViolation("", replied, []int{asked}, "%s asked %s at %s, and was answered only at %s.", s.agent, q.Method, timeText(q.T), timeText(r.T))
	}
}

// checkUnanswered judges a request without an answer.
func (c *checker) checkUnanswered(s *agentSession, asked int) {
	q := c.x.Event(asked)
	// Who gives a call up wants no answer, and the session may end before it is recorded that none came.
	if call := c.x.Call(q.About); q.Method == "tools/call" && call != nil && call.GivenUp >= 0 {
		return
	}
	if bound := c.answerBound(q); bound > 0 && s.end(c) > bound {
		c.reportViolationAt(bound, "", asked, nil, "%s asked %s (%s) at %s, and has no answer at %s.", s.agent, q.Method, q.ID, timeText(q.T), timeText(bound))
	}
}

// answerBound returns when a request must have its answer; 0 for what stays until its agent ends it, and for the calls that I2 judges.
func (c *checker) answerBound(q *history.Event) time.Duration {
	switch q.Method {
	case "subscriptions/listen", "tasks/result":
		return 0
	case "tools/call":
		if begin := c.x.Call(q.About); begin != nil && begin.Begin >= 0 {
			bound, _ := c.callBound(c.x.Event(begin.Begin))
			if bound > 0 {
				bound += deadlineTolerance + c.slack
			}
			return bound
		}
	}
	return q.T + agentAnswerBound + c.slack
}

// mayBeHidden reports whether the view of an agent may have hidden the server that its path names at any time of a stretch.
func (c *checker) mayBeHidden(s *agentSession, from, to time.Duration) bool {
	a := c.plannedAgent(s)
	if a == nil {
		return false
	}
	part, same := a.PartDuring(s.view, from-viewBound, to+c.instantBound())
	return !same || part.Hidden
}

// mayBeAbsent reports whether a server may have been out of the configuration at any time of a stretch: it was removed, and no command that
// adds it, given after that, had been answered before the stretch. Two commands of one instant come in either order.
func (c *checker) mayBeAbsent(server string, from, to time.Duration) bool {
	absent, removed := false, time.Duration(0)
	for _, a := range c.ownerCommands(server) {
		switch {
		case a.begin > to+c.instantBound():
		case a.action == "remove":
			absent, removed = true, a.begin
		case (a.action == "add" || a.action == "respec") && a.answered && !a.refused && a.begin > removed+c.instantBound() && a.end < from-c.skew:
			absent = false
		}
	}
	return absent
}
