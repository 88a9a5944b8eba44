package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I18: what the owner asks for is done when he asks.
//
//   - Reconnect dials now, and not when a timer that was set before rings: as soon as the old connection is gone and the gate has a
//     slot. That holds for what is parked and for what needs credentials too.
//   - What was removed is in no status any more when the manager has said so, which is when nothing is left of its connection; what was
//     not removed is there.
var prompt = check("I18", "what is asked for is done now",
	"Reconnect dials as soon as the old connection is gone and the gate has a slot, whatever timer runs; what was removed is gone from the "+
		"status.",
	"Nobody asked for a reconnect or a removal, and no status was looked at.",
	func(c *court) {
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil {
				continue
			}
			commands, wishes := c.commands(server), c.wishes(server)
			c.redialled(server, commands, wishes)
			c.removed(server, commands)
			c.listedInStatus(server, wishes)
		}
	})

// redialled judges each reconnect of a server that waited or was connected.
func (c *court) redialled(server string, commands []asked, wishes []since) {
	stays := c.stays(server)
	for _, a := range commands {
		if a.do != "reconnect" || a.refused {
			continue
		}
		was := c.stayAt(stays, a.begin)
		if was == nil || was.Retry == messages.RetryNever && c.blocked(stays) {
			continue
		}
		due := a.begin + c.late
		switch at := nodeOf(was); at {
		case failed, needsAuth, resting:
			if conn := c.openAt(server, a.begin); conn != nil || c.closingAt(server, a.begin) {
				due = c.stuck(server, due) + drain + stopLadder // it is not gone yet
			}
		case isConnected, restarting:
			due += drain + stopLadder
		default:
			continue // on its way, or not wanted
		}
		// Time in the gate's queue is not judged here.
		slack := c.late + time.Second
		until := c.closing()
		opened := -1
		for _, t := range c.attempts(server) {
			if open := c.x.Event(t.open).T; open >= a.begin-c.slower() {
				until, opened = min(until, open), t.open
				break
			}
		}
		if until <= due+slack || c.overtaken(commands, a, until) || c.under(server, a.begin, due, "sleep", "exhausted", "missing-binary") {
			continue
		}
		if w, _ := wished(wishes, a.begin, due+slack); w != on {
			continue
		}
		c.looked++
		at, free := c.full(poolOf(c.server(server).Kind)).free(due, until, slack)
		if !free {
			continue
		}
		when := "It was never dialled again"
		if opened >= 0 {
			when = "It was dialled at " + clock(until)
		}
		c.violatedAt(at+slack, server, a.at, []int{was.at, opened}, "The owner asked to reconnect the server at %s, when it was %s, and it was to be "+
			"dialled by %s: nothing was left of the old connection then, and the gate had a slot. %s.", clock(a.begin), describe(was.Event),
			clock(at+slack), when)
	}
}

// removed judges that the end of a removal comes: calls that were under way may go on for a while, and then it is said.
func (c *court) removed(server string, commands []asked) {
	for _, a := range commands {
		due := c.stuck(server, a.end) + drain + stopLadder + c.late
		if a.do != "remove" || !a.answered || a.failed || due >= c.closing() || c.overtaken(commands, a, due) {
			continue
		}
		c.looked++
		if !slices.ContainsFunc(c.x.Of(server), func(i int) bool {
			e := c.x.Event(i)
			return e.Kind == history.Removed && e.T >= a.begin-c.slower() && e.T <= due
		}) {
			c.violatedAt(due, server, a.at, []int{a.done}, "The server was removed, which was answered at %s, and the manager has not said until "+
				"%s that it is gone.", clock(a.end), clock(due))
		}
	}
}

// blocked reports whether the manager never dialled a server because its spec cannot be used.
func (c *court) blocked(stays []stay) bool {
	return !slices.ContainsFunc(stays, func(s stay) bool { return s.Step == messages.Dialing })
}

// closingAt reports whether something of a connection that has ended was still there.
func (c *court) closingAt(server string, t time.Duration) bool {
	return slices.ContainsFunc(c.x.Conns(server), func(conn *history.ConnRecord) bool {
		open, began := c.x.Time(conn.Open)
		released, over := c.x.Time(conn.Released)
		return began && open <= t && conn.Refused < 0 && (!over || released >= t)
	})
}

// stayAt is what was published of a server just before a time, nil if it was nothing.
func (c *court) stayAt(stays []stay, t time.Duration) *stay {
	for i := range stays {
		if s := &stays[i]; s.T < t-c.moment && (s.to > t+c.moment || s.next < 0) {
			return s
		}
	}
	return nil
}

// afterEnd is what the look at the status says that follows on the word of the manager that a server is removed. Of other looks in that
// instant nobody knows whether they came before it.
const afterEnd = "after its end"

// afterAnswer is what the look at the status says that follows on the answer to the command that removed a server.
const afterAnswer = "after its removal"

// listedInStatus compares the looks at the status with what the owner wished. What was removed stands there as disabled until nothing is
// left of its connection, and then the manager says that it is removed.
func (c *court) listedInStatus(server string, wishes []since) {
	removed := -1                         // the last word of the manager, if it is that
	alive := time.Duration(-1) - c.moment // when it was last said to be anything else than disabled
	for _, i := range c.x.Of(server) {
		e := c.x.Event(i)
		switch {
		case e.Kind == history.Removed:
			removed = i
		case e.Kind == history.Phase:
			if removed = -1; e.Phase != messages.Disabled {
				alive = e.T
			}
		case e.Kind == history.Command:
			removed = -1
		}
		if e.Kind != history.Status {
			continue
		}
		c.looked++
		w, at := wished(wishes, e.T-c.slower(), e.T+c.slower())
		switch {
		case w != gone || alive >= e.T-c.slower(): // or it lives again, and is to be removed once more
		case removed >= 0 && (e.T > c.x.Event(removed).T+c.slower() || e.Text == afterEnd && !c.real):
			c.violated(server, i, []int{at, removed}, "The manager said at %s that the server is removed, and it stands in the status at %s as %s.",
				clock(c.x.Event(removed).T), clock(e.T), e.Phase)
		case !c.real && e.T == c.x.Event(at).T && e.Text != afterAnswer: // whether the look or the answer came first, the record does not say
		case e.Phase != messages.Disabled || e.T > c.stuck(server, c.x.Event(at).T)+drain+stopLadder+c.late:
			c.violated(server, i, []int{at}, "The server was removed, which was answered at %s, and it stands in the status at %s as %s.",
				clock(c.x.Event(at).T), clock(e.T), e.Phase)
		}
	}
	for _, look := range c.looks() {
		if slices.ContainsFunc(c.x.Of(server), func(i int) bool {
			e := c.x.Event(i)
			return e.Kind == history.Status && near(e.T, look, c.slower())
		}) {
			continue
		}
		if w, at := wished(wishes, look-c.late, look); w == on || w == off {
			c.looked++
			c.violatedAt(look, server, max(at, 0), nil, "The server was never removed, and it does not stand in the status at %s.", clock(look))
		}
	}
}

// looks is when the status of every server was looked at: when the world was healed, and before the end.
func (c *court) looks() (out []time.Duration) {
	if c.real {
		return nil
	}
	for _, i := range c.x.Of("") {
		if e := c.x.Event(i); e.Kind == history.Heal || e.Kind == history.Closing {
			out = append(out, e.T)
		}
	}
	return out
}
