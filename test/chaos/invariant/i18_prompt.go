package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I18: the manager does what the owner asks when he asks for it.
//
//   - Reconnect dials as soon as the old connection is gone and the gate has a slot, even while a timer for a later attempt
//     runs. That includes parked servers and those that need credentials.
//   - A removed server is in no status after the manager has published its removal, which it does when nothing is left of the
//     connection; a server that was not removed is in every status.
//   - A server that waits for the start gate starts when the gate has a slot for it.
var promptnessCheck = newCheck("I18", "what is asked for is done now",
	"Reconnect dials as soon as the old connection is gone and the gate has a slot, whatever timer runs; who waits for the gate starts when it has a "+
		"slot; what was removed is gone from the status.",
	"Nobody asked for a reconnect or a removal, and no status was looked at.",
	func(c *checker) {
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil {
				continue
			}
			commands, wishes := c.ownerCommands(server), c.wantedStates(server)
			c.checkRedialed(server, commands, wishes)
			c.checkRemoved(server, commands)
			c.checkQueued(server)
			c.checkStatus(server, wishes)
		}
	})

// checkRedialed judges that each reconnect of a server that waited or was connected led to a dial in time.
func (c *checker) checkRedialed(server string, commands []ownerCommand, wishes []wantedSince) {
	stays := c.phaseSpans(server)
	for _, a := range commands {
		if a.action != "reconnect" || a.refused {
			continue
		}
		was := c.spanAt(stays, a.begin)
		// A spec that cannot be used is never dialled, whatever its owner asks.
		if was == nil || was.Retry == messages.RetryNever && c.neverDialed(stays) {
			continue
		}
		// The time for which the old connection may stand comes first.
		due := a.begin + c.slack
		switch at := nodeOf(was); at {
		case failed, needsAuth, resting:
			if conn := c.connOpenAt(server, a.begin); conn != nil || c.isClosingAt(server, a.begin) {
				due = c.stuckDialEnd(server, due) + drainTime + stopLadder // the old connection still has to be closed
			}
		case connectedNode, restarting:
			// A connected server may drain its calls and then be stopped.
			due += drainTime + stopLadder
		default:
			continue // an attempt is under way already, or the server is not wanted
		}
		// How long the gate makes the dial wait is I9's matter; only a free slot counts here.
		slack := c.slack + time.Second
		until := c.closeTime()
		opened := -1
		// The first dial after the command ends the wait.
		for _, t := range c.attemptsOf(server) {
			if open := c.x.Event(t.open).T; open >= a.begin-c.serverDelay() {
				until, opened = min(until, open), t.open
				break
			}
		}
		if until <= due+slack || c.isOvertaken(commands, a, until) || c.underFault(server, a.begin, due, "sleep", "exhausted", "missing-binary") {
			continue
		}
		// A later command may have taken the wish back.
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

// checkRemoved judges that the manager publishes the end of a removal after the calls in flight had their drain time.
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

// neverDialed reports whether the manager never published a dial of a server, because its spec cannot be used.
func (c *checker) neverDialed(stays []phaseSpan) bool {
	return !slices.ContainsFunc(stays, func(s phaseSpan) bool { return s.Step == messages.Dialing })
}

// isClosingAt reports whether a part of an ended connection, such as its process, was still there at a time.
func (c *checker) isClosingAt(server string, t time.Duration) bool {
	return slices.ContainsFunc(c.x.Conns(server), func(conn *history.ConnRecord) bool {
		open, began := c.x.Time(conn.Open)
		released, over := c.x.Time(conn.Released)
		return began && open <= t && conn.Refused < 0 && (!over || released >= t)
	})
}

// spanAt returns the phase that was published well before and after a time, nil if there was none or it changed within the
// skew.
func (c *checker) spanAt(stays []phaseSpan, t time.Duration) *phaseSpan {
	for i := range stays {
		if s := &stays[i]; s.T < t-c.skew && (s.to > t+c.skew || s.endEvent < 0) {
			return s
		}
	}
	return nil
}

// statusAfterEnd marks a status that the harness reads as a consequence of the manager's Removed event. Other statuses in that
// instant may have come before the event.
const statusAfterEnd = "after its end"

// statusAfterAnswer marks a status that the harness reads after the answer to the command that removed a server.
const statusAfterAnswer = "after its removal"

// checkStatus compares each recorded status with the owner's wishes. A removed server stays there as disabled until nothing is
// left of its connection; then the manager publishes that it is removed.
func (c *checker) checkStatus(server string, wishes []wantedSince) {
	removed := -1                                  // the last Removed event; -1 once a phase or a command followed
	ended, twice := -1*time.Second, -1*time.Second // when the server was removed last, and when a second time in one instant
	alive := time.Duration(-1) - c.skew            // the last phase other than disabled
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		switch {
		case e.Kind == history.Removed:
			if removed = i; ended == e.T {
				twice = e.T
			}
			ended = e.T
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
		case w != wantRemoved || alive >= e.T-c.serverDelay(): // not removed for sure, or it lives again and is to be removed once more
		case !c.real && e.T == twice: // a waiting add has brought it back in this instant, before the second removal
		case removed >= 0 && (e.T > c.x.Event(removed).T+c.serverDelay() || e.Text == statusAfterEnd && !c.real):
			c.reportViolation(server, i, []int{at, removed}, "The manager said at %s that the server is removed, and it stands in the status at %s as %s.",
				timeText(c.x.Event(removed).T), timeText(e.T), e.Phase)
		// The record does not say whether the status or the answer came first in this instant.
		case !c.real && e.T == c.x.Event(at).T && e.Text != statusAfterAnswer:
		case e.Phase != messages.Disabled || e.T > c.stuckDialEnd(server, c.x.Event(at).T)+drainTime+stopLadder+c.slack:
			c.reportViolation(server, i, []int{at}, "The server was removed, which was answered at %s, and it stands in the status at %s as %s.",
				timeText(c.x.Event(at).T), timeText(e.T), e.Phase)
		}
	}
	// A server that was never removed must be in each status; a status without it leaves no event, so each time of a status is
	// checked.
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

// statusTimes returns when the harness read the status of every server: when the world was healed, and before the end. A real
// run has no such fixed times.
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
