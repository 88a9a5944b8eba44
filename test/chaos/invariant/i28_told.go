package invariant

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// updateBound is the time in which an agent is told of the update of a resource that it watches: the manager gathers several within 100 ms.
const updateBound = time.Second

// agentWatch is a stretch of time in which an agent was told that it watches a resource of a server.
type agentWatch struct {
	session *agentSession
	// asked is the request by which it begins, from when that was answered, and to when the agent ended it or had gone.
	asked    int
	from, to time.Duration
}

// agentWatches returns the watches of one resource of a server, in the order of their sessions.
func (c *checker) agentWatches(server string, sessions []*agentSession) (all []agentWatch) {
	uri := "chaos://" + server + "/one"
	spans := connectedSpans(c.phaseSpans(server))
	for _, s := range sessions {
		open := -1 // the index of the watch of the legacy era that stands
		begin := func(asked int, from time.Duration) {
			// Before a view showed the server, the URI may have led to another one.
			if a := c.plannedAgent(s); a != nil {
				if p, same := a.PartDuring(server, c.x.Event(asked).T-viewBound, from); p.Hidden || !same {
					return
				}
			}
			// While the server is not connected, the URI leads to another one that is the only one with resources.
			if !slices.ContainsFunc(spans, func(u connectedSpan) bool { return u.from <= c.x.Event(asked).T && u.to >= from }) {
				return
			}
			all = append(all, agentWatch{s, asked, from, s.end(c)})
		}
		for _, i := range s.events {
			e := c.x.Event(i)
			switch {
			case e.About != uri:
			case e.Kind == history.Asked && e.Method == "resources/subscribe" && open < 0:
				if answered := c.answeredAt(s, i); answered >= 0 && !c.wasRefused(s, e) {
					n := len(all)
					if begin(i, answered); len(all) > n {
						open = n
					}
				}
			// From the request on nobody can say whether the watch stands, until the next one is answered.
			case e.Kind == history.Asked && e.Method == "resources/unsubscribe" && open >= 0:
				all[open].to, open = e.T, -1
			case e.Kind == history.Noticed && e.Method == "notifications/subscriptions/acknowledged" && len(s.asked[e.ID]) > 0:
				n := len(all)
				if begin(s.asked[e.ID][len(s.asked[e.ID])-1], e.T); len(all) > n {
					all[n].to = c.endOfListen(s, e.ID)
				}
			}
		}
	}
	return all
}

// endOfListen returns when a subscription of the modern era ended.
func (c *checker) endOfListen(s *agentSession, id string) time.Duration {
	end := s.end(c)
	for _, i := range s.events {
		if e := c.x.Event(i); e.ID == id && (e.Kind == history.Replied || e.Kind == history.Ended) {
			end = min(end, e.T)
		}
	}
	return end
}

// checkUpdates judges that each agent which watches a resource is told of each update that its server sends over a connection which stands, and
// that the server of the legacy era is asked to send them on each further connection.
func (c *checker) checkUpdates(server string, sessions []*agentSession) {
	if spec := c.serverSpec(server); !spec.Offers || c.real || c.ownerWatches(server) {
		return
	}
	watches := c.agentWatches(server, sessions)
	if len(watches) == 0 {
		return
	}
	spans := connectedSpans(c.phaseSpans(server))
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.Kind != history.Notified || e.Method != "notifications/resources/updated" || c.hasEnded(server, e.Conn, e.T) || c.isDisturbed(server, spans, e.T, e.T+updateBound) {
			continue
		}
		for _, w := range watches {
			c.checkUpdateTold(server, i, w)
		}
	}
	c.checkWatchedAnew(server, spans, watches)
}

// longestReopening is the longest time in which the stream is open again on which a server over HTTP announces changes and updates, after
// several cuts: the client's pause, and one that the server asks for.
const longestReopening = 35 * time.Second

// isDisturbed reports whether a server was not connected all the time from one time to another, or something happened to it that may have ended
// its connection, or the stream of its announcements, or the manager's knowledge of it.
func (c *checker) isDisturbed(server string, spans []connectedSpan, from, to time.Duration) bool {
	return c.underFault(server, from-updateBound, to) || c.underFault(server, from-longestReopening, to, "cut-stream") || c.wasCommanded(server, from-updateBound, to) || to >= c.closeTime() ||
		!slices.ContainsFunc(spans, func(u connectedSpan) bool { return u.from < from-c.instantBound() && u.to > to })
}

// hasEnded reports whether a connection had ended before a time. A server may not know it, and send over it what nothing brings any more.
func (c *checker) hasEnded(server string, number int, at time.Duration) bool {
	return slices.ContainsFunc(c.x.Conns(server), func(conn *history.ConnRecord) bool { return conn.Conn == number && c.endOfConn(conn) < at })
}

// checkUpdateTold judges that one agent is told of one update.
func (c *checker) checkUpdateTold(server string, at int, w agentWatch) {
	e, s := c.x.Event(at), w.session
	due, known := c.noticeDue(e.T, streamGaps(c, s))
	due = max(due, e.T+updateBound)
	if w.from >= e.T-c.instantBound() || w.to <= due || !known {
		return
	}
	if a := c.plannedAgent(s); a != nil {
		if p, same := a.PartDuring(server, c.x.Event(w.asked).T-viewBound, due); p.Hidden || !same {
			return
		}
	}
	c.judged++
	uri := cmp.Or(e.About, scenario.OfferURI(server, "one")) // a part of what is watched, or the whole
	if !slices.ContainsFunc(s.events, func(i int) bool {
		n := c.x.Event(i)
		return n.Kind == history.Noticed && n.Method == "notifications/resources/updated" && n.About == uri && n.T >= e.T-c.instantBound() && n.T <= due
	}) {
		c.reportViolationAt(due, server, at, []int{w.asked}, "%s watches %s, or what it is a part of, since %s, the server sent an update of it at %s, and the agent was not told by %s.", s.agent, uri,
			timeText(w.from), timeText(e.T), timeText(due))
	}
}

// checkWatchedAnew judges that a further connection of a server of the legacy era is asked for the resource that agents watch.
func (c *checker) checkWatchedAnew(server string, spans []connectedSpan, watches []agentWatch) {
	spec := c.serverSpec(server)
	if spec.Era == messages.EraModern {
		return
	}
	due := 4*spec.Latency + c.slack + resubscribeReserve
	for _, u := range spans {
		conn := c.connOf(server, u)
		if conn == nil || u.to <= u.from+due || u.from+due >= c.closeTime() {
			continue
		}
		began := c.x.Event(conn.Events[0]).T
		if c.underFault(server, began, u.from+due) {
			continue
		}
		for _, w := range watches {
			if w.from >= began-updateBound || w.to <= u.from+due || c.wasForgotten(server, w.from, u.from+due) || c.mayBeIdle(w.session, u.from) {
				continue
			}
			c.judged++
			if !slices.ContainsFunc(conn.Events, func(i int) bool {
				e := c.x.Event(i)
				return e.Kind == history.Answered && e.Method == "resources/subscribe" && e.Code == 0 && e.T <= u.from+due
			}) {
				c.reportViolationAt(u.from+due, server, u.event, []int{w.asked}, "%s watches a resource of the server since %s. The server is connected anew since %s, and had agreed to "+
					"no subscription on connection %d by %s.", w.session.agent, timeText(w.from), timeText(u.from), conn.Conn, timeText(u.from+due))
				return
			}
		}
	}
}

// sessionIdle is the shortest time after which the endpoint may forget an unused session, with its watches.
const sessionIdle = 15 * time.Second

// mayBeIdle reports whether a session may have been forgotten before a time, because it had no stream for so long.
func (c *checker) mayBeIdle(s *agentSession, before time.Duration) bool {
	return slices.ContainsFunc(streamGaps(c, s), func(g streamGap) bool { return min(g.to, before)-g.from >= sessionIdle })
}

// streamGaps are the times in which a session had no stream for what belongs to no request.
func streamGaps(c *checker, s *agentSession) (away []streamGap) {
	for _, i := range s.events {
		e := c.x.Event(i)
		switch {
		case e.ID != "":
		case e.Kind == history.StreamCut:
			away = append(away, streamGap{e.T, s.end(c)})
		case e.Kind == history.StreamBack:
			if n := len(away) - 1; n >= 0 && away[n].to == s.end(c) {
				away[n].to = e.T
			} else {
				away = append(away, streamGap{e.T, e.T})
			}
		}
	}
	return away
}
