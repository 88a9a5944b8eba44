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
var promptnessCheck = newCheck("I18", "what is asked for is done now",
	"Reconnect dials as soon as the old connection is gone and the gate has a slot, whatever timer runs; what was removed is gone from the "+
		"status.",
	"Nobody asked for a reconnect or a removal, and no status was looked at.",
	func(c *checker) {
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil {
				continue
			}
			commands, wishes := c.ownerCommands(server), c.wantedStates(server)
			c.checkRedialed(server, commands, wishes)
			c.checkRemoved(server, commands)
			c.checkStatus(server, wishes)
		}
	})

// checkRedialed judges each reconnect of a server that waited or was connected.
func (c *checker) checkRedialed(server string, commands []ownerCommand, wishes []wantedSince) {
	stays := c.phaseSpans(server)
	for _, a := range commands {
		if a.action != "reconnect" || a.refused {
			continue
		}
		was := c.spanAt(stays, a.begin)
		if was == nil || was.Retry == messages.RetryNever && c.neverDialed(stays) {
			continue
		}
		due := a.begin + c.slack
		switch at := nodeOf(was); at {
		case failed, needsAuth, resting:
			if conn := c.connOpenAt(server, a.begin); conn != nil || c.isClosingAt(server, a.begin) {
				due = c.stuckDialEnd(server, due) + drainTime + stopLadder // it is not gone yet
			}
		case connectedNode, restarting:
			due += drainTime + stopLadder
		default:
			continue // on its way, or not wanted
		}
		// Time in the gate's queue is not judged here.
		slack := c.slack + time.Second
		until := c.closeTime()
		opened := -1
		for _, t := range c.attemptsOf(server) {
			if open := c.x.Event(t.open).T; open >= a.begin-c.serverDelay() {
				until, opened = min(until, open), t.open
				break
			}
		}
		if until <= due+slack || c.isOvertaken(commands, a, until) || c.underFault(server, a.begin, due, "sleep", "exhausted", "missing-binary") {
			continue
		}
		if w, _ := wantedThroughout(wishes, a.begin, due+slack); w != wantConnected {
			continue
		}
		c.judged++
		at, free := c.poolFullness(poolOf(c.serverSpec(server).Kind)).firstFree(due, until, slack)
		if !free {
			continue
		}
		when := "It was never dialled again"
		if opened >= 0 {
			when = "It was dialled at " + timeText(until)
		}
		c.reportViolationAt(at+slack, server, a.event, []int{was.event, opened}, "The owner asked to reconnect the server at %s, when it was %s, and it was to be "+
			"dialled by %s: nothing was left of the old connection then, and the gate had a slot. %s.", timeText(a.begin), describePhase(was.Event),
			timeText(at+slack), when)
	}
}

// checkRemoved judges that the end of a removal comes: calls that were under way may go on for a while, and then it is said.
func (c *checker) checkRemoved(server string, commands []ownerCommand) {
	for _, a := range commands {
		due := c.stuckDialEnd(server, a.end) + drainTime + stopLadder + c.slack
		if a.action != "remove" || !a.answered || a.failed || due >= c.closeTime() || c.isOvertaken(commands, a, due) {
			continue
		}
		c.judged++
		if !slices.ContainsFunc(c.x.ServerEvents(server), func(i int) bool {
			e := c.x.Event(i)
			return e.Kind == history.Removed && e.T >= a.begin-c.serverDelay() && e.T <= due
		}) {
			c.reportViolationAt(due, server, a.event, []int{a.doneEvent}, "The server was removed, which was answered at %s, and the manager has not said until "+
				"%s that it is gone.", timeText(a.end), timeText(due))
		}
	}
}

// neverDialed reports whether the manager never dialled a server because its spec cannot be used.
func (c *checker) neverDialed(stays []phaseSpan) bool {
	return !slices.ContainsFunc(stays, func(s phaseSpan) bool { return s.Step == messages.Dialing })
}

// isClosingAt reports whether something of a connection that has ended was still there.
func (c *checker) isClosingAt(server string, t time.Duration) bool {
	return slices.ContainsFunc(c.x.Conns(server), func(conn *history.ConnRecord) bool {
		open, began := c.x.Time(conn.Open)
		released, over := c.x.Time(conn.Released)
		return began && open <= t && conn.Refused < 0 && (!over || released >= t)
	})
}

// spanAt is what was published of a server just before a time, nil if it was nothing.
func (c *checker) spanAt(stays []phaseSpan, t time.Duration) *phaseSpan {
	for i := range stays {
		if s := &stays[i]; s.T < t-c.skew && (s.to > t+c.skew || s.endEvent < 0) {
			return s
		}
	}
	return nil
}

// statusAfterEnd is what the look at the status says that follows on the word of the manager that a server is removed. Of other looks in that
// instant nobody knows whether they came before it.
const statusAfterEnd = "after its end"

// statusAfterAnswer is what the look at the status says that follows on the answer to the command that removed a server.
const statusAfterAnswer = "after its removal"

// checkStatus compares the looks at the status with what the owner wished. What was removed stands there as disabled until nothing is
// left of its connection, and then the manager says that it is removed.
func (c *checker) checkStatus(server string, wishes []wantedSince) {
	removed := -1                       // the last word of the manager, if it is that
	alive := time.Duration(-1) - c.skew // when it was last said to be anything else than disabled
	for _, i := range c.x.ServerEvents(server) {
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
		c.judged++
		w, at := wantedThroughout(wishes, e.T-c.serverDelay(), e.T+c.serverDelay())
		switch {
		case w != wantRemoved || alive >= e.T-c.serverDelay(): // or it lives again, and is to be removed once more
		case removed >= 0 && (e.T > c.x.Event(removed).T+c.serverDelay() || e.Text == statusAfterEnd && !c.real):
			c.reportViolation(server, i, []int{at, removed}, "The manager said at %s that the server is removed, and it stands in the status at %s as %s.",
				timeText(c.x.Event(removed).T), timeText(e.T), e.Phase)
		case !c.real && e.T == c.x.Event(at).T && e.Text != statusAfterAnswer: // whether the look or the answer came first, the record does not say
		case e.Phase != messages.Disabled || e.T > c.stuckDialEnd(server, c.x.Event(at).T)+drainTime+stopLadder+c.slack:
			c.reportViolation(server, i, []int{at}, "The server was removed, which was answered at %s, and it stands in the status at %s as %s.",
				timeText(c.x.Event(at).T), timeText(e.T), e.Phase)
		}
	}
	for _, look := range c.statusTimes() {
		if slices.ContainsFunc(c.x.ServerEvents(server), func(i int) bool {
			e := c.x.Event(i)
			return e.Kind == history.Status && isWithin(e.T, look, c.serverDelay())
		}) {
			continue
		}
		if w, at := wantedThroughout(wishes, look-c.slack, look); w == wantConnected || w == wantDisabled {
			c.judged++
			c.reportViolationAt(look, server, max(at, 0), nil, "The server was never removed, and it does not stand in the status at %s.", timeText(look))
		}
	}
}

// statusTimes is when the status of every server was looked at: when the world was healed, and before the end.
func (c *checker) statusTimes() (out []time.Duration) {
	if c.real {
		return nil
	}
	for _, i := range c.x.ServerEvents("") {
		if e := c.x.Event(i); e.Kind == history.Heal || e.Kind == history.Closing {
			out = append(out, e.T)
		}
	}
	return out
}
