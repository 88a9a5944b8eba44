package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// viewBound is how long after a change of the catalog the agents of a gateway must have been told: twice the 50 ms in which it waits for
// further changes, and the time in which the registry publishes.
const viewBound = 100*time.Millisecond + 2*publishGap

// I26: what an agent sees is the catalog, by the rule of its view.
//
//   - A list of tools has, of each server of the view, what the catalog showed while the agent was answered, byte for byte but for the
//     names, and nothing of other servers.
//   - An agent that has listed is told of a change within viewBound, if the change is still there then.
//   - One that has listed prompts or resources, or listens, is told of each change that a server announces (i26_offers.go).
//   - It is told of no change where nothing has changed since it was told last, or listed.
//   - What its view hides is answered as what does not exist, comes to no server, and stands in no list.
var viewCheck = newCheck("I26", "views of the catalog",
	"A view equals the catalog filtered by its rule, and list_changed comes within a bound where the bytes of the view have changed, and nowhere else.",
	"No agent listed tools.",
	func(c *checker) {
		whole := shownSpans(c.catalogSpans())
		for _, s := range c.agentSessions() {
			spans := c.spansSeenBy(s, whole)
			for id, replied := range s.replied {
				for n, i := range replied {
					if e := c.x.Event(i); e.Method == "tools/list" && e.Code == 0 && e.Name == "" && n < len(s.asked[id]) {
						c.judged++
						c.checkList(s, s.asked[id][n], i, spans)
					}
				}
			}
			c.checkTold(s, spans)
			c.checkHidden(s)
			c.checkOffersTold(s)
		}
	})

// shownSpans are the spans of the catalog as a view shows them: without the entries of lost connections, which the catalog keeps for who
// waits. Names of servers that hold the separator, or what becomes a part of it, are left out, because nobody can take the names
// of their tools apart.
func shownSpans(spans map[string][]catalogSpan) map[string][]catalogSpan {
	for server, all := range spans {
		if strings.ContainsAny(server, "_.") {
			delete(spans, server)
			continue
		}
		for i := range all {
			if all[i].state == "lost" {
				all[i].count, all[i].hash = 0, ""
			}
		}
	}
	return spans
}

// checkList compares one list with the catalog.
func (c *checker) checkList(s *agentSession, asked, replied int, spans map[string][]catalogSpan) {
	from, e := c.x.Event(asked).T, c.x.Event(replied)
	for server, all := range spans {
		if s.view != "" && server != s.view {
			continue
		}
		at := slices.IndexFunc(e.Entries, func(x history.Entries) bool { return x.Server == server })
		shown := history.Entries{Server: server}
		if at >= 0 {
			shown = e.Entries[at]
		}
		// What belongs to a server whose name holds the separator may be taken for that of a shorter name.
		fits := c.hasUnclearNames() || shown.Count == 0 && (len(all) == 0 || all[0].from >= from-c.skew)
		for i := range all {
			p := &all[i]
			if p.from <= e.T+c.instantBound() && p.to >= from-c.instantBound() && (p.mixed || p.count == shown.Count && (p.count == 0 || shown.Hash == "" || p.hash == shown.Hash)) {
				fits = true
			}
		}
		if !fits {
			c.reportViolation(server, replied, []int{asked}, "%s was shown %d tools of the server %s at %s, and the catalog had others between %s and then.",
				s.agent, shown.Count, server, timeText(e.T), timeText(from))
		}
	}
	for _, x := range e.Entries {
		if s.view != "" && x.Server != s.view || spans[x.Server] == nil && !c.hasUnclearNames() {
			c.reportViolation(x.Server, replied, []int{asked}, "%s was shown %d tools of the server %q at %s, which its view does not have.", s.agent, x.Count,
				x.Server, timeText(e.T))
		}
	}
}

// hasUnclearNames reports whether the plan has servers whose names hold the separator of names.
func (c *checker) hasUnclearNames() bool {
	return slices.ContainsFunc(c.plan.Servers, func(s scenario.Server) bool { return strings.ContainsAny(s.Name, "_.") })
}

// viewChange is a time at which the bytes of a view have changed, and for how long they stayed other than before.
type viewChange struct {
	at, until time.Duration
	event     int
	// server is whose tools have changed, and was and now count them.
	server   string
	was, now int
	// back is set if it was so a moment before, too: who waits for further changes sees none.
	back bool
}

// wasSoBefore reports whether a server had the same entries a moment before a span.
func (c *checker) wasSoBefore(earlier []catalogSpan, p *catalogSpan) bool {
	for i := range earlier {
		if b := &earlier[i]; b.to >= p.from-viewBound-c.slack && b.count == p.count && b.hash == p.hash {
			return true
		}
	}
	// Before its first entry a server has none.
	return p.count == 0 && len(earlier) > 0 && earlier[0].from >= p.from-viewBound-c.slack
}

// viewChanges returns when the catalog changed for a view.
func (c *checker) viewChanges(view string, spans map[string][]catalogSpan) (all []viewChange) {
	for server, ofServer := range spans {
		if view != "" && server != view {
			continue
		}
		for i := range ofServer {
			before := catalogSpan{}
			if i > 0 {
				before = ofServer[i-1]
			}
			if p := &ofServer[i]; p.count != before.count || p.hash != before.hash || p.mixed {
				until := p.to
				for k := i + 1; k < len(ofServer) && ofServer[k].hash == p.hash && ofServer[k].count == p.count; k++ {
					until = ofServer[k].to
				}
				all = append(all, viewChange{p.from, until, p.event, server, before.count, p.count, c.wasSoBefore(ofServer[:i], p)})
			}
		}
	}
	slices.SortFunc(all, func(a, b viewChange) int { return int(a.at - b.at) })
	return all
}

// listensToTask reports whether a subscription is one to a task.
func (c *checker) listensToTask(s *agentSession, id string) bool {
	asked := s.asked[id]
	return len(asked) > 0 && c.x.Call(c.x.Event(asked[len(asked)-1]).About) != nil
}

const toolsChanged = "notifications/tools/list_changed"

// checkTold compares the notifications of a session with the changes of its view.
func (c *checker) checkTold(s *agentSession, spans map[string][]catalogSpan) {
	changes := c.viewChanges(s.view, spans)
	var listed, notices []*history.Event
	var toldAt []int
	listens := map[string]time.Duration{} // the acknowledged subscriptions
	begin, listening := time.Duration(-1), time.Duration(-1)
	away := streamGaps(c, s)
	for _, i := range s.events {
		e := c.x.Event(i)
		switch {
		case e.Kind == history.Replied && e.Method == "tools/list" && e.Code == 0 && e.Name == "":
			if listed = append(listed, e); begin < 0 {
				begin = e.T
			}
		case e.Kind == history.Noticed && e.Method == "notifications/subscriptions/acknowledged" && c.listensToTask(s, e.ID):
			// It asks for no news of lists.
		case e.Kind == history.Noticed && e.Method == "notifications/subscriptions/acknowledged":
			if listens[e.ID] = e.T; listening < 0 {
				listening = e.T
			}
		case e.Kind == history.Noticed && e.Method == toolsChanged:
			notices, toldAt = append(notices, e), append(toldAt, i)
		}
	}
	joined, _ := c.x.Time(s.joined)
	for n, e := range notices {
		c.judged++
		since := joined
		for k := range n {
			if notices[k].ID == e.ID {
				since = notices[k].T
			}
		}
		// Who begins to listen is told at once of what has changed since an agent of the view has listed: it may have been the same one, in a
		// session before.
		if acknowledged, ok := listens[e.ID]; ok && e.T <= acknowledged+c.instantBound() || c.hasUnclearNames() {
			continue
		}
		if !slices.ContainsFunc(changes, func(v viewChange) bool {
			return v.at >= since-viewBound-c.slack && v.at <= e.T+max(c.instantBound(), c.skew)
		}) {
			c.reportViolation("", toldAt[n], nil, "%s was told at %s that its tools have changed, and nothing that it sees had changed since %s.", s.agent,
				timeText(e.T), timeText(since))
		}
	}
	if c.isModernSession(s) {
		if begin = listening; begin < 0 {
			return
		}
	}
	if begin < 0 {
		return
	}
	for _, v := range changes {
		due, known := c.noticeDue(v.at, away)
		if !known || v.at <= begin || v.back || v.until <= due || due >= min(s.end(c), c.closeTime()) || c.isModernSession(s) && !c.standsAt(s, listens, v.at, due) {
			continue
		}
		c.judged++
		if slices.ContainsFunc(notices, func(e *history.Event) bool { return e.T >= v.at-c.instantBound() && e.T <= due }) ||
			slices.ContainsFunc(listed, func(e *history.Event) bool { return e.T >= v.at && e.T <= due }) {
			continue
		}
		c.reportViolationAt(due, v.server, v.event, nil, "What %s sees of %s changed at %s from %d tools to %d, and it was not told by %s.%s", s.agent, v.server,
			timeText(v.at), v.was, v.now, timeText(due), streamText(away, v.at))
	}
}

// A streamGap is a stretch of time in which a session had no stream, or the moment in which its stream was replaced.
type streamGap struct{ from, to time.Duration }

// noticeDue returns the time by which a session has to be told of a change. A notice for a session without a stream is kept for the next one;
// what was sent into a stream in the moment in which it broke may be lost.
func (c *checker) noticeDue(at time.Duration, away []streamGap) (due time.Duration, known bool) {
	due = at + viewBound + c.slack
	for _, gap := range away {
		switch {
		case gap.from <= due && gap.from >= at:
			return due, false
		case at > gap.from && at <= gap.to:
			due = max(due, gap.to+viewBound+c.slack)
		}
	}
	return due, true
}

// saidSince returns the earliest time at which the gateway may have said what a session got at a time: what it said while the session had no stream
// was kept for the next one.
func (c *checker) saidSince(s *agentSession, at time.Duration) time.Duration {
	for _, gap := range streamGaps(c, s) {
		if gap.from < at && gap.to >= at-viewBound-c.slack {
			return gap.from
		}
	}
	return at
}

// streamText says in which stream of a session a change fell, after the first one; empty for that.
func streamText(away []streamGap, at time.Duration) string {
	for _, gap := range slices.Backward(away) {
		switch {
		case gap.from >= at:
		case gap.to < at:
			return " It had another stream than before since " + timeText(gap.to) + "."
		default:
			return " It had no stream from " + timeText(gap.from) + " to " + timeText(gap.to) + "."
		}
	}
	return ""
}

// isModernSession reports whether an agent spoke the modern era.
func (c *checker) isModernSession(s *agentSession) bool {
	return s.joined >= 0 && len(c.x.Event(s.joined).Name) > 6 && c.x.Event(s.joined).Name[:6] == string(messages.EraModern)
}

// standsAt reports whether one of the subscriptions of a session stood from one time to another.
func (c *checker) standsAt(s *agentSession, listens map[string]time.Duration, from, to time.Duration) bool {
	for id, began := range listens {
		end := s.end(c)
		for _, i := range s.replied[id] {
			end = min(end, c.x.Event(i).T)
		}
		for _, i := range s.events {
			if e := c.x.Event(i); e.Kind == history.Ended && e.ID == id {
				end = min(end, e.T)
			}
		}
		if began < from && end > to { // in one instant the change may have come first
			return true
		}
	}
	return false
}
