package invariant

import (
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// These are the manager's own bounds where a spec names no connectTimeout: opening.DefaultConnectTimeout and opening.MaxSilence.
const (
	firstSilence   = 30 * time.Second
	longestSilence = 5 * time.Minute
)

// checkAttemptLengths is I7 for how long one attempt lasts at a server that sends nothing: for the connectTimeout of its spec. If
// that names none, it is 30 s at first, twice as long after each attempt in a row that took too long, and again 30 s after
// a success.
func (c *checker) checkAttemptLengths(server string) {
	spec := c.spec[server]
	if c.real || spec == nil {
		return
	}
	stays := c.phaseSpans(server)
	// timeouts counts the attempts in a row that took too long. It is not known for sure (-1) after what may clear it unseen.
	timeouts := 0
	for i := 0; i < len(stays); i++ {
		s := &stays[i]
		if i > 0 && stays[i-1].endEvent != s.event || s.Phase == messages.Connected {
			timeouts = 0
		}
		if nodeOf(s) != dialing {
			continue
		}
		last := i
		for last+1 < len(stays) && stays[last].endEvent == stays[last+1].event && stays[last+1].Phase == messages.Pending && stays[last+1].Epoch == s.Epoch &&
			nodeOf(&stays[last+1]) != closing && nodeOf(&stays[last+1]) != queued {
			last++
		}
		until := min(stays[last].to, c.closeTime())
		failed := last+1 < len(stays) && stays[last].endEvent == stays[last+1].event && stays[last+1].Phase == messages.Failed &&
			stays[last+1].Class == messages.ClassTimeout
		most := spec.ConnectTimeout
		if spec.NoConnectTimeout {
			most = firstSilence
			for range timeouts {
				most = min(2*most, longestSilence)
			}
		}
		if failed {
			timeouts++
		}
		if _, found := c.commandIn(c.ownerCommands(server), s.T, until); found || c.wasHeard(server, s.T, until) || c.underFault(server, s.T, until, "sleep", "stuck-dial") ||
			c.respecifiedBefore(server, s.T) {
			continue
		}
		c.judged++
		slack := c.slack + time.Second
		switch {
		case until-s.T > most+slack:
			c.reportViolationAt(s.T+most+slack, server, s.event, []int{stays[last].event}, "The server is %s since %s and has sent nothing. It had to be given up when %s had "+
				"passed, by %s, and was not until %s.", describePhase(s.Event), timeText(s.T), most, timeText(s.T+most+slack), timeText(until))
			return
		case failed && spec.NoConnectTimeout && until-s.T < most-slack:
			c.reportViolation(server, stays[last+1].event, []int{s.event}, "The server is %s since %s, and was given up at %s because it was silent: %s had to pass, after %d "+
				"attempts in a row that took too long.", describePhase(s.Event), timeText(s.T), timeText(until), most, timeouts-1)
			return
		}
	}
}

// respecifiedBefore reports whether the owner has described a server anew before a time. That begins the count of attempts anew,
// in a moment that the record does not hold.
func (c *checker) respecifiedBefore(server string, t time.Duration) bool {
	for _, a := range c.ownerCommands(server) {
		if (a.action == "respec" || a.action == "add" || a.action == "remove") && a.begin <= t {
			return true
		}
	}
	return false
}

// wasHeard reports whether a server sent anything between two times, or ended its connection: then it was not silent, and other
// rules say what has to follow.
func (c *checker) wasHeard(server string, from, to time.Duration) bool {
	for _, i := range c.x.ServerEvents(server) {
		if e := c.x.Event(i); (e.Kind == history.Answered || e.Kind == history.Notified || e.Kind == history.Down) && e.T >= from && e.T <= to {
			return true
		}
	}
	return false
}
