package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// listsOfNews are the lists that a notification of a server is about, by its method: resources and their templates have one.
var listsOfNews = map[string][]string{
	"notifications/prompts/list_changed":   {"prompts/list"},
	"notifications/resources/list_changed": {"resources/list", "resources/templates/list"},
}

const (
	// listPages is how many pages a list of resources or of prompts of a server has at most.
	listPages = 3
	// comparedRequests is how many requests a gateway makes at most of a server before an agent is told that its list has changed: a comparison may
	// be under way, and each reads up to three pages of resources and of prompts, and the templates.
	comparedRequests = 14
	// lostListAge is how long a list may be waited for whose request a fault has swallowed: no further one is made before, over the same connection.
	lostListAge = 2*time.Minute + 10*time.Second
	// otherServersBound is how long such a comparison may wait for the other servers of a view, twice.
	otherServersBound = 20 * time.Second
)

// checkOffersTold is I26 for prompts and resources: an agent that has listed them, or listens, is told when a server announces that its list has
// changed, over a connection that stands. Every change that the servers of the harness announce is one of the bytes of the list.
func (c *checker) checkOffersTold(s *agentSession) {
	if c.real {
		return
	}
	for _, server := range c.x.Servers() {
		spec := c.serverSpec(server)
		if !spec.Offers || s.view != "" && s.view != server || c.plan.Denies(server) {
			continue
		}
		bound := time.Second + time.Duration(comparedRequests)*spec.Latency*3/2
		if s.view == "" && len(c.plan.Servers) > 1 {
			bound += otherServersBound
		}
		spans := connectedSpans(c.phaseSpans(server))
		for _, i := range c.x.ServerEvents(server) {
			if e := c.x.Event(i); e.Kind == history.Notified && listsOfNews[e.Method] != nil && !c.hasEnded(server, e.Conn, e.T) {
				c.checkOfferTold(s, server, spans, i, bound)
			}
		}
	}
}

// checkOfferTold judges that one session is told of one change.
func (c *checker) checkOfferTold(s *agentSession, server string, spans []connectedSpan, at int, bound time.Duration) {
	e := c.x.Event(at)
	due, known := c.lastOfRow(server, e)+bound, true
	for _, gap := range streamGaps(c, s) {
		switch {
		case gap.from >= e.T && gap.from <= due:
			known = false
		case e.T > gap.from && e.T <= gap.to:
			due = max(due, gap.to+bound)
		}
	}
	asked := c.newsAskedFor(s, e, due)
	if !known || asked < 0 || due >= s.end(c) || c.isDisturbed(server, spans, e.T, due) || c.hindersLists(server, e.T, due) {
		return
	}
	u := spans[slices.IndexFunc(spans, func(u connectedSpan) bool { return u.from < e.T && u.to > due })] // it is not disturbed, so that there is one
	if c.underFault(server, max(u.from, e.T-lostListAge), e.T) {
		return
	}
	if a := c.plannedAgent(s); a != nil {
		if p, same := a.PartDuring(server, c.x.Event(asked).T-viewBound, due); p.Hidden || !same {
			return
		}
	}
	c.judged++
	if !slices.ContainsFunc(s.events, func(i int) bool {
		n := c.x.Event(i)
		switch {
		case n.T < e.T-c.instantBound() || n.T > due:
			return false
		case n.Kind == history.Asked: // it reads the changed list by itself, so that nothing has changed for it when the gateway compares
			return slices.Contains(listsOfNews[e.Method], n.Method)
		}
		return n.Kind == history.Noticed && n.Method == e.Method
	}) {
		c.reportViolationAt(due, server, at, []int{asked}, "The server said at %s that its list has changed (%s), and %s, which %s at %s, was not told by %s.", timeText(e.T), e.Method, s.agent,
			map[bool]string{true: "listens for that since it asked", false: "had asked for it"}[c.isModernSession(s)], timeText(c.x.Event(asked).T), timeText(due))
	}
}

// lastOfRow returns the time of the last one of a row of announcements that begins with news, each of which comes before the pages of a list can have been read since
// the one before: the gateway compares what it reads once the server leaves its list alone for long enough.
func (c *checker) lastOfRow(server string, news *history.Event) time.Duration {
	last, pause := news.T, listPages*c.serverSpec(server).Latency*3/2+c.instantBound()
	for _, i := range c.x.ServerEvents(server) {
		if e := c.x.Event(i); e.Kind == history.Notified && e.Method == news.Method && e.T > last && e.T <= last+pause {
			last = e.T
		}
	}
	return last
}

// hindersLists reports whether a server may have made a list wait for a slot among its requests in flight, or have answered it later than its call
// timeout allows, at any time of a stretch. A list that cannot be read is left out, and its change is no change for agents.
func (c *checker) hindersLists(server string, from, to time.Duration) bool {
	return slices.ContainsFunc(c.specVersionsIn(server, from, to), func(d specVersion) bool {
		return d.MaxInFlight > 0 || d.CallTimeout > 0 && d.CallTimeout < listPages*d.Latency*3/2
	})
}

// newsAskedFor returns the request because of which a session is owed the news of a server at a time, -1 if there is none: in the legacy era a list
// that it was given, in the modern era a subscription that stands.
func (c *checker) newsAskedFor(s *agentSession, news *history.Event, due time.Duration) (asked int) {
	for _, i := range s.events {
		q := c.x.Event(i)
		switch {
		case q.Kind != history.Asked || q.T >= news.T || q.Name != "":
		case c.isModernSession(s):
			agreed := slices.IndexFunc(s.events, func(k int) bool {
				n := c.x.Event(k)
				return n.Kind == history.Noticed && n.Method == "notifications/subscriptions/acknowledged" && n.ID == q.ID
			})
			if q.Method == "subscriptions/listen" && agreed >= 0 && !c.listensToTask(s, q.ID) &&
				c.standsAt(s, map[string]time.Duration{q.ID: c.x.Event(s.events[agreed]).T}, news.T-c.instantBound(), due) {
				return i
			}
		case slices.Contains(listsOfNews[news.Method], q.Method):
			if answered := c.answeredAt(s, i); answered >= 0 && answered < news.T-c.instantBound() && !c.wasRefused(s, q) {
				return i
			}
		}
	}
	return -1
}
