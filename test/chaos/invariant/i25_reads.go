package invariant

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// ownRequests are the methods that the gateway answers itself, whatever its servers do.
var ownRequests = []string{"tools/list", "resources/list", "prompts/list", "logging/setLevel", "initialize", "server/discover", "ping"}

// offerRequests are the methods that the gateway passes on to the one server that they are about.
var offerRequests = []string{"resources/read", "prompts/get", "completion/complete", "resources/subscribe", "resources/unsubscribe"}

// visitNeeded is the code with which a server refuses a request until a person has visited an address (2025-11-25, URL mode elicitation).
const visitNeeded = -32042

// checkAgentRead judges the answer to a request of an agent that is no call: the agent reads a state of the server from the time of the request, and
// is refused nothing that the gateway, or a server which is connected and answers without an error, can give.
func (c *checker) checkAgentRead(s *agentSession, asked, replied int) {
	q, r := c.x.Event(asked), c.x.Event(replied)
	server := c.serverOfOffer(s, q)
	if r.Rev != 0 && server != "" {
		c.checkRead(server, c.offerEvents(server), asked, replied)
	}
	if q.Name == "" && r.Code == 0 && (q.Method == "resources/list" || q.Method == "prompts/list") && !c.real && r.T < c.closeTime() {
		c.checkListed(s, asked, replied)
	}
	if q.Name != "" || r.Name != "" || r.Code == 0 || r.Code == sessionNotFound || c.real || r.T >= c.closeTime() {
		return
	}
	// Of a view that is missing, or of a server that is not there, every request is refused alike.
	if s.view != "" && c.mayBeAbsent(s.view, q.T, r.T) {
		return
	}
	switch {
	case slices.Contains(ownRequests, q.Method):
		if a := c.plannedAgent(s); a != nil && s.view != "" && c.mayBeHidden(s, q.T, r.T) {
			return
		}
	case slices.Contains(offerRequests, q.Method):
		// Whose a resource or a prompt is depends, in the view of all servers, on what each of them lists.
		isUnknown := s.view == "" && (r.Code == -32002 || r.Code == -32602)
		if server == "" || isUnknown || !c.serverSpec(server).HasMethod(q.Method) || !c.couldAnswer(s, server, q, r) {
			return
		}
	default:
		return
	}
	c.judged++
	c.reportViolation(server, replied, []int{asked}, "%s asked %s (%s) at %s, and was refused at %s with the code %d (%s): nothing was in the way of an answer.", s.agent,
		q.Method, q.About, timeText(q.T), timeText(r.T), r.Code, r.Text)
}

// listTime is less than the time that the gateway gives a server to list what it has.
const listTime = 4800 * time.Millisecond

// checkListed judges that a list of resources or prompts has some of each server which has some, is seen by the agent, and could say so.
func (c *checker) checkListed(s *agentSession, asked, replied int) {
	q, r := c.x.Event(asked), c.x.Event(replied)
	if r.T-q.T >= listTime {
		return // a server did not answer, perhaps to what another agent had asked before
	}
	for i := range c.plan.Servers {
		spec := &c.plan.Servers[i]
		if !spec.HasMethod(q.Method) || s.view != "" && s.view != spec.Name || slices.ContainsFunc(r.Entries, func(e history.Entries) bool { return e.Server == spec.Name }) ||
			strings.ContainsAny(spec.Name, "_.") || c.mayHaveTimedOut(spec.Name, q.T, r.T) || !c.couldAnswer(s, spec.Name, q, r) {
			continue
		}
		c.judged++
		c.reportViolation(spec.Name, replied, []int{asked}, "%s asked %s at %s, and was given none of the server at %s, which has some: nothing was in the way of an answer.", s.agent, q.Method, timeText(q.T),
			timeText(r.T))
	}
}

// couldAnswer reports whether nothing kept a server from answering a request of an agent: it was connected all the time, without a fault or a
// command, the agent sees it, and it answered all that it got of the method, and nothing with an error. A request that it has not answered may
// have run out of time, and of a server with a bound of calls there may be too many.
func (c *checker) couldAnswer(s *agentSession, server string, q, r *history.Event) bool {
	if c.isLazyOrBounded(server, q.T, r.T) || c.plan.Denies(server) || c.isDisturbed(server, connectedSpans(c.phaseSpans(server)), q.T, r.T) {
		return false
	}
	// A read about which its agent refuses a question fails.
	if slices.ContainsFunc(s.events, func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Advised && e.Code != 0 && e.T >= q.T && e.T <= r.T
	}) {
		return false
	}
	if a := c.plannedAgent(s); a != nil {
		if p, same := a.PartDuring(server, q.T-viewBound, r.T); p.Hidden || !same {
			return false
		}
	}
	open := map[string]bool{} // what the server has not answered: the method, and lists, by which the gateway finds out whose a resource is
	listens := 0              // the subscriptions of the modern era that it has not acknowledged
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		// The agent may have been asked to visit something meanwhile, and its request is then another round of the one that the server refused.
		if e.T > r.T || e.T < q.T-c.instantBound() && (r.Code != visitNeeded || e.Code != visitNeeded) {
			continue
		}
		switch {
		case e.Kind == history.Received && (e.Method == q.Method || strings.HasSuffix(e.Method, "/list")):
			open[e.ID] = true
		case e.Kind == history.Received && e.Method == "subscriptions/listen":
			listens++
		case e.Kind == history.Notified && e.Method == "notifications/subscriptions/acknowledged":
			listens = max(listens-1, 0)
		case e.Kind == history.Answered && e.Code != 0:
			return false
		case e.Kind == history.Answered:
			delete(open, e.ID)
		}
	}
	return len(open) == 0 && (listens == 0 || q.Method != "resources/subscribe")
}

// serverOfOffer returns the server of the resource or prompt that a request is about, "" for any other request.
func (c *checker) serverOfOffer(s *agentSession, q *history.Event) (server string) {
	if !slices.Contains(offerRequests, q.Method) {
		return ""
	}
	if uri, ok := strings.CutPrefix(q.About, "chaos://"); ok {
		server, _, _ = strings.Cut(uri, "/")
		return server
	}
	return c.serverOfPrompt(s, q.About)
}

// serverOfPrompt returns the server of a prompt by the name that an agent has for it, "" if that does not say which it is: only a list tells how the
// prompts of a server are called whose own name has a line or a dot. The name of one server may begin that of another.
func (c *checker) serverOfPrompt(s *agentSession, shown string) (server string) {
	for i := range c.plan.Servers {
		if name := c.plan.Servers[i].Name; strings.HasPrefix(shown, name+"__") && len(name) > len(server) {
			server = name
		}
	}
	if strings.ContainsAny(server, "_.") {
		return ""
	}
	return cmp.Or(server, s.view)
}
