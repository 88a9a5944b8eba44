package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// unwatchedBound is how long a server may be subscribed to after the last agent has gone: as long as the gateway waits for it.
const unwatchedBound = 10 * time.Second

// I28: a gateway keeps nothing of agents that have gone.
//
//   - When all have gone and it is closed, it has no session, no subscription and no watch any more, and nothing writes to an agent after
//     its exchange (the harness looks).
//   - However many agents watch a resource, its server is asked once: a connection gets no second subscription while the first one stands,
//     and is asked to end it when no agent watches any more. An agent that gets an answer to its request to watch is subscribed, also if it
//     had ended an earlier watch; one that watches and asks once more gets the same answer again.
//   - An agent that watches a resource is told of each update of it, and each further connection of the server is asked for it.
var leftCheck = newCheck("I28", "nothing kept of agents",
	"No session, watch, goroutine or timer of an agent is left, and subscriptions at servers are counted: one for all agents, none for none.",
	"No agent came.",
	func(c *checker) {
		sessions := c.agentSessions()
		for _, s := range sessions {
			if s.parted >= 0 {
				c.judged++
			}
		}
		if len(sessions) == 0 {
			return
		}
		for _, server := range c.x.Servers() {
			c.checkWatchedAgain(server, sessions)
			c.checkUpdates(server, sessions)
			if c.onlyAgentsWatch(server) {
				c.checkSubscriptions(server, sessions)
				c.checkSubscribed(server, sessions)
			}
		}
	})

// onlyAgentsWatch reports whether a server's subscriptions are those of agents: no other caller subscribes, and nobody speaks of it in a
// way that ends them.
func (c *checker) onlyAgentsWatch(server string) bool {
	s := c.serverSpec(server)
	if !s.Offers || s.Era == messages.EraModern || s.Kind == messages.HTTP {
		return false // over HTTP a request may be sent again, and the modern era has subscriptions of another form
	}
	return !c.ownerWatches(server)
}

// ownerWatches reports whether callers of the owner subscribe to a server's resource: when they end that, it is ended for all.
func (c *checker) ownerWatches(server string) bool {
	return slices.ContainsFunc(c.plan.Load, func(l scenario.PlannedLoad) bool { return l.Server == server && l.Read == "subscribe" })
}

// checkSubscriptions judges the subscriptions of each connection of a server.
func (c *checker) checkSubscriptions(server string, sessions []*agentSession) {
	uri := "chaos://" + server + "/one"
	for _, conn := range c.x.Conns(server) {
		last, stands := -1, false
		// asked are the requests to subscribe after which none to end it has come. A request to end it may come in the instant of the answer,
		// which the record then holds after it.
		asked := map[string]bool{}
		for _, i := range conn.Events {
			e := c.x.Event(i)
			// What its agent takes back before the answer stands nowhere.
			if e.Kind == history.Answered && e.Method == "resources/subscribe" && e.Code == 0 && asked[e.ID] {
				last, stands = i, true
			}
			// A URI that no list has goes to the only server that may have it: that of another server, too.
			if e.Kind != history.Received || e.About != "" && e.About != uri {
				continue
			}
			switch e.Method {
			case "resources/subscribe":
				c.judged++
				if stands && !c.underFault(server, c.x.Event(last).T, e.T) {
					c.reportViolation(server, i, []int{last}, "The server was asked at %s to watch what it had been asked to watch at %s on the same connection, "+
						"and not in between to end that.", timeText(e.T), timeText(c.x.Event(last).T))
				}
				asked[e.ID] = true
			case "resources/unsubscribe":
				last, stands = i, false
				clear(asked)
			}
		}
		if !stands {
			continue
		}
		end := c.closeTime()
		if t, ok := c.x.Time(conn.Down); ok {
			end = min(end, t)
		}
		if t, ok := c.x.Time(conn.Released); ok {
			end = min(end, t)
		}
		gone := c.lastWatch(uri, sessions)
		if c.x.Event(last).T > gone {
			continue
		}
		if gone+unwatchedBound+c.slack < end && !c.underFault(server, gone, end) && !c.wasCommanded(server, gone, end) {
			c.reportViolationAt(gone+unwatchedBound, server, last, nil, "The last agent that watched the server's resource had gone at %s, and connection %d was not "+
				"asked by %s to end the subscription of %s.", timeText(gone), conn.Conn, timeText(gone+unwatchedBound), timeText(c.x.Event(last).T))
			continue
		}
		// A server that was disabled meanwhile is asked when it is connected again, over the connection that was kept.
		for _, u := range connectedSpans(c.phaseSpans(server)) {
			if due := u.from + unwatchedBound + c.slack; u.from > gone && due < min(u.to, end) && !c.underFault(server, gone, due) && !c.wasCommanded(server, u.from+c.instantBound(), due) {
				c.reportViolationAt(due, server, last, nil, "The last agent that watched the server's resource had gone at %s, the server was connected again since %s, "+
					"and connection %d was not asked by %s to end the subscription of %s.", timeText(gone), timeText(u.from), conn.Conn, timeText(due), timeText(c.x.Event(last).T))
				break
			}
		}
	}
}

// checkSubscribed judges that an agent which was told that it watches a resource is subscribed at the server: of what the server was asked on a
// connection that stood all the while, the last was to subscribe.
func (c *checker) checkSubscribed(server string, sessions []*agentSession) {
	uri := "chaos://" + server + "/one"
	for _, s := range sessions {
		for _, asked := range s.events {
			q := c.x.Event(asked)
			answered := c.answeredAt(s, asked)
			if q.Kind != history.Asked || q.Method != "resources/subscribe" || q.About != uri || answered < 0 || c.wasRefused(s, q) || c.tookBack(s, asked, answered) {
				continue
			}
			// What its view hides may have gone to another server of the view, as any URI does that no server lists.
			if a := c.plannedAgent(s); a != nil {
				if p, same := a.PartDuring(server, q.T-viewBound, answered); p.Hidden || !same {
					continue
				}
			}
			for _, conn := range c.x.Conns(server) {
				opened, ok := c.x.Time(conn.Opened)
				if !ok || opened >= q.T-c.instantBound() || c.endOfConn(conn) <= answered+c.instantBound() || c.underFault(server, opened, answered) || c.wasCommanded(server, opened, answered) {
					continue
				}
				last := -1
				for _, i := range conn.Events {
					e := c.x.Event(i)
					if e.Kind == history.Received && (e.Method == "resources/subscribe" || e.Method == "resources/unsubscribe") && (e.About == "" || e.About == uri) && e.T <= answered {
						last = i
					}
				}
				c.judged++
				if last >= 0 && c.x.Event(last).Method == "resources/unsubscribe" && c.x.Event(last).T < answered-c.instantBound() {
					c.reportViolation(server, last, []int{asked}, "%s was told at %s that it watches %s, and the last that connection %d was asked about it, at %s, was to end the subscription.", s.agent,
						timeText(answered), uri, conn.Conn, timeText(c.x.Event(last).T))
				}
			}
		}
	}
}

// tookBack reports whether an agent asked to end the watch that it had asked for, before that was answered at a time: the answer then says
// nothing of a watch.
func (c *checker) tookBack(s *agentSession, asked int, answered time.Duration) bool {
	return slices.ContainsFunc(s.events, func(i int) bool {
		e := c.x.Event(i)
		return i > asked && e.Kind == history.Asked && e.Method == "resources/unsubscribe" && e.About == c.x.Event(asked).About && e.T <= answered
	})
}

// checkWatchedAgain judges that an agent which was told that it watches a resource, and has not ended that, is not refused when it asks once more,
// on a connection that stood all the while.
func (c *checker) checkWatchedAgain(server string, sessions []*agentSession) {
	uri := "chaos://" + server + "/one"
	for _, s := range sessions {
		watchedAt := time.Duration(-1)
		for _, i := range s.events {
			q := c.x.Event(i)
			if q.Kind != history.Asked || q.About != uri {
				continue
			}
			switch q.Method {
			case "resources/unsubscribe":
				watchedAt = -1
			case "resources/subscribe":
				answered := c.answeredAt(s, i)
				if answered < 0 {
					continue
				}
				if !c.wasRefused(s, q) {
					if watchedAt < 0 {
						watchedAt = answered
					}
					continue
				}
				if watchedAt < 0 || q.T < watchedAt || !c.stoodBetween(server, watchedAt, answered) || c.mayHaveTimedOut(server, q.T, answered) {
					continue
				}
				// A request from before the owner took the server away is answered after that, and the server gets no more.
				if _, found := c.commandIn(c.ownerCommands(server), watchedAt-drainTime, answered); found {
					continue
				}
				if a := c.plannedAgent(s); a != nil {
					if p, same := a.PartDuring(server, watchedAt-viewBound, answered); p.Hidden || !same {
						continue
					}
				}
				c.judged++
				c.reportViolation(server, i, nil, "%s was told at %s that it watches %s, asked for that once more at %s, and was refused.", s.agent, timeText(watchedAt), uri, timeText(q.T))
			}
		}
	}
}

// mayHaveTimedOut reports whether a request that lasted from one time to another may have ended because it took too long: it waits for its turn
// behind others, and for its server.
func (c *checker) mayHaveTimedOut(server string, from, to time.Duration) bool {
	return slices.ContainsFunc(c.specVersionsIn(server, from, to), func(d specVersion) bool {
		return d.CallTimeout > 0 && to-from >= d.CallTimeout-2*time.Millisecond-c.instantBound() // a simulation shortens each limit a little
	})
}

// stoodBetween reports whether one connection of a server stood from one time to another, without a fault or a command.
func (c *checker) stoodBetween(server string, from, to time.Duration) bool {
	return !c.underFault(server, from, to) && !c.wasCommanded(server, from, to) && slices.ContainsFunc(c.x.Conns(server), func(conn *history.ConnRecord) bool {
		opened, ok := c.x.Time(conn.Opened)
		return ok && opened < from-c.instantBound() && c.endOfConn(conn) > to+c.instantBound()
	})
}

// endOfConn returns when a connection ended, the end of the run if it did not.
func (c *checker) endOfConn(conn *history.ConnRecord) time.Duration {
	end := c.closeTime()
	for _, at := range []int{conn.Down, conn.Released} {
		if t, ok := c.x.Time(at); ok {
			end = min(end, t)
		}
	}
	return end
}

// lastWatch returns the time at which the last agent that watched a resource had ended that, or had gone.
func (c *checker) lastWatch(uri string, sessions []*agentSession) (last time.Duration) {
	for _, s := range sessions {
		end := time.Duration(-1)
		for _, i := range s.events {
			switch e := c.x.Event(i); {
			case e.About != uri || e.Kind != history.Asked || c.wasRefused(s, e):
			case e.Method == "resources/subscribe" || e.Method == "subscriptions/listen":
				if end = s.end(c); s.parted >= 0 && c.x.Event(s.parted).Name == history.Abandoned {
					end = c.endTime() // its watches stand as long as its session, and the record does not show how long that is
				}
			case e.Method == "resources/unsubscribe" && e.T < end:
				end = e.T
			}
		}
		last = max(last, end)
	}
	return last
}

// wasRefused reports whether a request of an agent was answered with an error: then it has changed nothing.
func (c *checker) wasRefused(s *agentSession, asked *history.Event) bool {
	return slices.ContainsFunc(s.events, func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Replied && e.ID == asked.ID && e.Code != 0
	})
}

// wasCommanded reports whether the owner gave a command about a server between two times.
func (c *checker) wasCommanded(server string, from, to time.Duration) bool {
	for _, i := range c.x.ServerEvents(server) {
		if e := c.x.Event(i); e.Kind == history.Command && e.T >= from && e.T <= to {
			return true
		}
	}
	return false
}
