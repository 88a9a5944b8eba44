package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I22: a status, published to watchers or returned by Status, is true.
//
//   - Restarts counts the connections after the first one, since the server was added.
//   - Since is the begin of the phase.
//   - A server that restarts comes back soon; one that is parked or not tried again is published as failed.
//   - An error stays until the server is connected again, and then goes. A failed server has an error; that of an attempt which ran out of time says
//     what had no answer.
//   - Next is set while the supervisor waits for the next attempt, and lies ahead. The attempt does not come earlier, unless a
//     command asks for it, and not later where the gate has a slot.
//   - Status returns what watchers got last. A connected server has as many tools as the catalog shows of it.
//
// It is judged only where times are exact.
var statusSays = newCheck("I22", "the status is true",
	"Restarts, since, the error, the next attempt and the tools in a status are what happened; who asks hears what who watches was told.",
	"The manager published no phase, or the times of this run are not exact.",
	func(c *checker) {
		if c.real {
			return
		}
		shows := c.catalogSpans()
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil {
				continue
			}
			stays := c.phaseSpans(server)
			c.judged += len(stays)
			c.dated(server, stays)
			c.restarted(server, stays)
			c.explained(server, stays)
			c.scheduled(server, stays)
			c.looksAgree(server, stays, shows[server])
		}
	})

// dated judges Since. Within one instant a server may pass through a phase that is never published, so Since may be younger
// than the phase before.
func (c *checker) dated(server string, stays []phaseSpan) {
	for i := range stays {
		s := &stays[i]
		switch {
		case s.Since > s.T:
			c.reportViolation(server, s.event, nil, "The server is %s at %s, and its status says that it will be so since %s.", describePhase(s.Event), timeText(s.T), timeText(s.Since))
			return
		case i == 0 || stays[i-1].endEvent != s.event:
		case stays[i-1].Phase != s.Phase && s.Since < stays[i-1].T:
			c.reportViolation(server, s.event, []int{stays[i-1].event}, "The server is %s at %s, and its status says that it is so since %s, when it was %s.",
				describePhase(s.Event), timeText(s.T), timeText(s.Since), describePhase(stays[i-1].Event))
			return
		case stays[i-1].Phase == s.Phase && s.Since != stays[i-1].Since && s.Since < stays[i-1].T:
			c.reportViolation(server, s.event, []int{stays[i-1].event}, "The server is %s since %s by its status at %s, and was so since %s by the one before.",
				s.Phase, timeText(s.Since), timeText(s.T), timeText(stays[i-1].Since))
			return
		}
	}
}

// restarted judges that Restarts lies between the epochs that were published as connected and the dials, each less the first
// one. A server that is added again counts anew.
func (c *checker) restarted(server string, stays []phaseSpan) {
	conns := c.x.Conns(server)
	var seen []uint64
	first := 0 // the first connection of this life
	for i := range stays {
		s := &stays[i]
		// A stay that does not follow on the one before comes after a removal: the connections until then belong to the earlier
		// life.
		if i > 0 && stays[i-1].endEvent != s.event {
			seen = seen[:0]
			for first < len(conns) && conns[first].Open >= 0 && c.x.Event(conns[first].Open).T < stays[i-1].to {
				first++
			}
		}
		if s.Phase == messages.Connected && !slices.Contains(seen, s.Epoch) {
			seen = append(seen, s.Epoch)
		}
		opened := 0
		for _, conn := range conns[min(first, len(conns)):] {
			if t, ok := c.x.Time(conn.Open); ok && t <= s.T {
				opened++
			}
		}
		if least, most := max(len(seen)-1, 0), max(opened-1, 0); s.Restarts < least || s.Restarts > most {
			c.reportViolation(server, s.event, nil, "The status says at %s that the server was restarted %d times. It was dialled %d times by then, and connected in %d "+
				"epochs.", timeText(s.T), s.Restarts, opened, len(seen))
			return
		}
	}
}

// explained judges the error, its class and the retry word of each phase: none while connected, one while failed or restarting.
func (c *checker) explained(server string, stays []phaseSpan) {
	for i := range stays {
		s := &stays[i]
		switch at := nodeOf(s); {
		case at == connectedNode && (s.Text != "" || s.Class != ""):
			c.reportViolation(server, s.event, nil, "The server is connected at %s, and its status says an error (%s): %s.", timeText(s.T), s.Class, s.Text)
			return
		case (at == failed || at == needsAuth || at == restarting) && (s.Text == "" || s.Class == ""):
			c.reportViolation(server, s.event, nil, "The server is %s at %s, and its status says no error.", describePhase(s.Event), timeText(s.T))
			return
		case at == failed && i > 0 && s.Class == messages.ClassTimeout && c.ranOutOfTime(server, &stays[i-1], s) && !strings.Contains(s.Text, unansweredWords[stays[i-1].Step]):
			c.reportViolation(server, s.event, []int{stays[i-1].event}, "The server was %s from %s to %s, until its connect timeout, and its status says this error, which does not tell that there was %s: %s.",
				stays[i-1].Step, timeText(stays[i-1].T), timeText(s.T), unansweredWords[stays[i-1].Step], s.Text)
			return
		case at == restarting && s.Retry != "" && s.Retry != messages.RetryAt:
			c.reportViolation(server, s.event, nil, "The server is %s at %s, and its status says that it is not tried again soon (%s): that is failed.",
				describePhase(s.Event), timeText(s.T), s.Retry)
			return
		}
	}
}

// unansweredWords are the words for what had not happened when the time of an attempt had passed, by its step.
var unansweredWords = map[messages.Step]string{
	messages.Dialing: "the connection could not be opened", messages.Handshaking: "no answer to initialize", messages.Listing: "no answer to tools/list",
}

// ranOutOfTime reports whether an attempt was in one of its steps until it had lasted for the connect timeout of its server, or longer, and then failed.
func (c *checker) ranOutOfTime(server string, step, after *phaseSpan) bool {
	return unansweredWords[step.Step] != "" && step.Epoch == after.Epoch && step.endEvent == after.event && c.serverSpec(server).ConnectTimeout > 0 &&
		after.T-step.Since >= c.serverSpec(server).ConnectTimeout-c.instantBound()
}

// scheduled judges the time of the next attempt: set only while failed or restarting, ahead of the phase, and kept within the
// tolerance.
func (c *checker) scheduled(server string, stays []phaseSpan) {
	commands, auth := c.ownerCommands(server), c.signInTimes(server)
	for i := range stays {
		s := &stays[i]
		if s.Next == 0 {
			continue
		}
		at := nodeOf(s)
		if at != failed && at != restarting {
			c.reportViolation(server, s.event, nil, "The server is %s at %s, and its status says that the next attempt is at %s.", describePhase(s.Event), timeText(s.T), timeText(s.Next))
			return
		}
		if s.Next < s.T {
			c.reportViolation(server, s.event, nil, "The server is %s at %s, and its status says that the next attempt was at %s.", describePhase(s.Event), timeText(s.T),
				timeText(s.Next))
			return
		}
		until := min(s.to, c.closeTime())
		// A command, new credentials or a fault may bring the attempt forward or hold it up.
		if _, found := c.commandIn(commands, s.T, until); found || signedInDuring(auth, s.T-c.slack, until+c.slack) || c.underFault("", s.T, until) {
			continue
		}
		if i+1 < len(stays) && stays[i].endEvent == stays[i+1].event && nodeOf(&stays[i+1]) == dialing && stays[i+1].T < s.Next-c.instantBound() && stays[i+1].T < c.closeTime() {
			c.reportViolation(server, stays[i+1].event, []int{s.event}, "The status said at %s that the next attempt is at %s, and it was made at %s, and nobody had asked "+
				"for it.", timeText(s.T), timeText(s.Next), timeText(stays[i+1].T))
			return
		}
		slack := c.slack + time.Second
		if until <= s.Next+slack {
			continue
		}
		// A full gate may hold the attempt up; only from its first free slot on the delay counts.
		if at, free := c.poolFullness(poolOf(c.serverSpec(server).Kind)).firstFree(s.Next, until, slack); free {
			c.reportViolationAt(at+slack, server, s.event, nil, "The status said at %s that the next attempt is at %s, and said so still at %s: the gate had a slot.",
				timeText(s.T), timeText(s.Next), timeText(at+slack))
			return
		}
	}
}

// looksAgree compares each status that the harness read with the last phase that watchers got.
func (c *checker) looksAgree(server string, stays []phaseSpan, all []catalogSpan) {
	k := 0
	for _, i := range c.x.ServerEvents(server) {
		e := c.x.Event(i)
		if e.Kind != history.Status {
			continue
		}
		for k < len(stays) && stays[k].to <= e.T && stays[k].endEvent >= 0 {
			k++
		}
		if k == len(stays) || stays[k].T >= e.T || stays[k].endEvent >= 0 && stays[k].to <= e.T {
			continue // two events of one instant have no known order
		}
		s := &stays[k]
		c.judged++
		if nodeOf(s) != nodeOf(&phaseSpan{Event: e}) || s.Since != e.Since || s.Next != e.Next || s.Retry != e.Retry || s.Restarts != e.Restarts ||
			// A disabled server has no connection, so its epoch and class are left out.
			s.Phase != messages.Disabled && (s.Epoch != e.Epoch || s.Class != e.Class) {
			c.reportViolation(server, i, []int{s.event}, "The status said at %s: %s, and those who watch were told last, at %s: %s.", timeText(e.T), saysOf(e), timeText(s.T),
				saysOf(s.Event))
			return
		}
		n, _ := slices.BinarySearchFunc(all, e.T, func(s catalogSpan, t time.Duration) int { return int(s.from - t) })
		if e.Phase != messages.Connected || n == 0 || all[n-1].to <= e.T+c.skew && all[n-1].endEvent >= 0 || all[n-1].from > e.T-c.skew {
			continue // the session publishes the catalog a moment after the phase
		}
		if now := all[n-1]; now.count != e.Tools {
			c.reportViolation(server, i, []int{now.event}, "The status says at %s that the server has %d tools, and the catalog shows %d of it.", timeText(e.T), e.Tools, now.count)
			return
		}
	}
}

// saysOf renders the judged fields of a status in one line.
func saysOf(e *history.Event) string {
	text := describePhase(e) + " since " + timeText(e.Since)
	if e.Class != "" {
		text += ", " + string(e.Class)
	}
	if e.Next > 0 {
		text += ", next attempt at " + timeText(e.Next)
	}
	return text
}
