package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// plannedAgent returns the agent of a session as the plan has it, nil for one that no view holds.
func (c *checker) plannedAgent(s *agentSession) *scenario.PlannedAgent {
	i := slices.IndexFunc(c.plan.Agents, func(a scenario.PlannedAgent) bool { return a.Name == s.agent })
	if i < 0 || len(c.plan.Agents[i].Within) == 0 {
		return nil
	}
	return &c.plan.Agents[i]
}

// spansSeenBy are the spans of the catalog as the view of an agent leaves them: cut where the view changes, with the tools that it shows.
func (c *checker) spansSeenBy(s *agentSession, spans map[string][]catalogSpan) map[string][]catalogSpan {
	a := c.plannedAgent(s)
	if a == nil {
		return spans
	}
	seen := make(map[string][]catalogSpan, len(spans))
	for server, all := range spans {
		for i := range all {
			seen[server] = append(seen[server], partsOfSpan(a, server, &all[i])...)
		}
	}
	return seen
}

// partsOfSpan cuts one span.
func partsOfSpan(a *scenario.PlannedAgent, server string, whole *catalogSpan) (pieces []catalogSpan) {
	from := whole.from
	for _, v := range a.Within {
		if at := time.Duration(v.At); at > from && at < whole.to {
			pieces = append(pieces, partOfSpan(a, server, whole, from, at))
			from = at
		}
	}
	return append(pieces, partOfSpan(a, server, whole, from, whole.to))
}

// partOfSpan returns what an agent sees in a piece of a span, in which its view does not change.
func partOfSpan(a *scenario.PlannedAgent, server string, whole *catalogSpan, from, to time.Duration) catalogSpan {
	p, part := *whole, a.PartAt(server, from)
	p.from, p.to = from, to
	switch {
	case part.String() == "" || p.count == 0:
	case part.Hidden:
		p.count, p.hash, p.mixed = 0, "", false
	default:
		// What was recorded is there for each part that an agent of the plan sees.
		p.count, p.hash, _ = history.PartIn(p.parts, part)
	}
	if p.count == 0 {
		p.hash = ""
	}
	return p
}

// hiddenCode is the code of the error for a tool that a view hides: what is hidden is not told from what does not exist.
const hiddenCode = -32602

// checkHidden judges what an agent asked of servers and tools that its view hid all the while: it is answered as if they did not exist, and no
// server gets it. Nor is the agent told of their resources.
func (c *checker) checkHidden(s *agentSession) {
	a := c.plannedAgent(s)
	if a == nil {
		return
	}
	isHidden := func(server, tool string, from, to time.Duration) bool {
		p, same := a.PartDuring(server, from-viewBound, to+c.instantBound())
		return same && server != "" && (p.Hidden || tool != "" && !p.Has(tool))
	}
	for id, replied := range s.replied {
		for n, i := range replied {
			if n >= len(s.asked[id]) {
				continue
			}
			q, r := c.x.Event(s.asked[id][n]), c.x.Event(i)
			server, tool := c.ownedBy(s, q)
			c.checkHiddenLists(s, i, q, r, isHidden)
			if r.Name != "" || q.Name != "" || r.Code == sessionNotFound || !isHidden(server, tool, q.T, r.T) {
				continue
			}
			c.judged++
			if isRead := q.Method == "resources/read" || q.Method == "prompts/get"; isRead && r.Code == 0 || q.Method == "tools/call" && r.Code != hiddenCode {
				c.reportViolation(server, i, []int{s.asked[id][n]}, "%s asked %s (%s) at %s about what its view hides, and was answered at %s with the code %d%s: it had to be told that there is no such thing.",
					s.agent, q.Method, q.About, timeText(q.T), timeText(r.T), r.Code, textIn(r))
			}
		}
	}
	for _, i := range s.events {
		c.judged++
		switch e := c.x.Event(i); {
		case e.Kind == history.Noticed && e.Method == "notifications/resources/updated" && isHidden(serverOfURI(e.About), "", c.saidSince(s, e.T), e.T) &&
			c.hasUpdated(serverOfURI(e.About), e.T):
			c.reportViolation(serverOfURI(e.About), i, nil, "%s got an update of %s at %s, whose server its view hides.", s.agent, e.About, timeText(e.T))
		case e.Kind == history.Asked && e.Method == "tools/call":
			c.checkHiddenCall(s, i, isHidden)
		}
	}
}

// hasUpdated reports whether the manager published an update of a server a moment before a time. The URI alone does not say whose update an
// agent is told of: what is in no list of its view is watched at the one server there that may have it, by its URI.
func (c *checker) hasUpdated(server string, t time.Duration) bool {
	return slices.ContainsFunc(c.x.ServerEvents(server), func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Updated && e.T <= t && e.T >= t-viewBound-c.slack
	})
}

// checkHiddenCall judges that a call of a hidden tool comes to no server. An agent may come back to a call that asked it before the tool was
// hidden, which its server has.
func (c *checker) checkHiddenCall(s *agentSession, asked int, isHidden func(server, tool string, from, to time.Duration) bool) {
	q := c.x.Event(asked)
	call := c.x.Call(q.About)
	if call == nil || call.Begin < 0 {
		return
	}
	server, tool := c.ownedBy(s, q)
	for _, i := range call.Received {
		if e := c.x.Event(i); e.T >= q.T && isHidden(server, tool, q.T, e.T) {
			c.reportViolation(server, i, []int{asked}, "%s called the tool %s of %s at %s (call %s), which its view hides, and the call came to the server at %s.", s.agent, tool,
				server, timeText(q.T), q.About, timeText(e.T))
			return
		}
	}
}

// checkHiddenLists judges that a list of resources or prompts has nothing of a hidden server.
func (c *checker) checkHiddenLists(s *agentSession, replied int, q, r *history.Event, isHidden func(server, tool string, from, to time.Duration) bool) {
	if q.Method != "resources/list" && q.Method != "prompts/list" {
		return
	}
	for _, e := range r.Entries {
		c.judged++
		if isHidden(e.Server, "", q.T, r.T) {
			c.reportViolation(e.Server, replied, nil, "%s was given %d entries of %s in the answer to %s at %s, which its view hides.", s.agent, e.Count, e.Server, q.Method, timeText(r.T))
		}
	}
}

// ownedBy returns the server and the tool that a request is about; no tool for what is read of the server, and no server for what is about none.
func (c *checker) ownedBy(s *agentSession, q *history.Event) (server, tool string) {
	switch q.Method {
	case "tools/call":
		if call := c.x.Call(q.About); call != nil && call.Begin >= 0 {
			return call.Server, c.x.Event(call.Begin).Tool
		}
	case "resources/read", "prompts/get":
		return c.serverAsked(s, q), ""
	}
	return "", ""
}

// serverOfURI returns the server that a resource of the harness names.
func serverOfURI(uri string) string {
	server, _, _ := strings.Cut(strings.TrimPrefix(uri, "chaos://"), "/")
	return server
}

// textIn returns the text of an answer in brackets, empty for none.
func textIn(r *history.Event) string {
	if r.Text == "" {
		return ""
	}
	return " (" + messages.Line(r.Text, 100) + ")"
}
