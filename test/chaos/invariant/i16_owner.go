package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I16: the owner is obeyed and answered. What he wants of a server follows from the order of his commands alone, and is compared with what
// the manager says and answers.
//
//   - Each command is answered. Those that end something, and the set of servers, at once; those that bring a server into motion
//     as soon as it is published where it stays: connected, failed, in need of
//     credentials, disabled or at rest.
//   - A command is refused for one of two reasons, and then always: there is no such server, or it is disabled and was to be
//     reconnected.
//   - An answer is true: nil when the server is connected, rests or is not wanted, and an error when it failed.
//   - A server that is wanted is there, and is not published as disabled.
var ownerCheck = newCheck("I16", "the owner's commands",
	"Each command is answered within its bound and refused only for a documented reason; what is wanted follows from their order.",
	"The owner asked for nothing.",
	func(c *checker) {
		c.checkFirstSet()
		for _, a := range c.ownerCommands("") {
			if a.action == "configure" || a.action == "wake" {
				c.checkPromptAnswer("", a, a.begin)
				c.checkAccepted(a)
			}
		}
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil {
				continue
			}
			var own []ownerCommand
			for _, a := range c.ownerCommands(server) {
				if !a.everyServer {
					own = append(own, a)
				}
			}
			stays, intents := c.phaseSpans(server), c.intentsBefore(server, own)
			for i, a := range own {
				if a.begin >= c.closeTime() {
					break
				}
				c.checkCommandTime(server, stays, own, a)
				if a.answered && a.end < c.closeTime() && !a.impliedBySet && !c.isOrderUnknown(own, i) && !c.ownerGaveUp(a) {
					c.checkCommandRefusal(server, own, i, intents[i])
					c.checkCommandAnswer(server, stays, own, i)
				}
			}
			c.checkWantedPresent(server, stays, own)
		}
	})

// checkFirstSet judges that the first set of servers, which no command stands for, was accepted.
func (c *checker) checkFirstSet() {
	for _, i := range c.x.ServerEvents("") {
		if e := c.x.Event(i); e.Kind == history.Done && e.Command == 0 && e.Text != "" {
			c.judged++
			c.reportViolation("", i, nil, "The first set of servers was refused at %s: %s.", timeText(e.T), e.Text)
		}
	}
}

// checkAccepted judges that what is asked of the whole manager is not refused.
func (c *checker) checkAccepted(a ownerCommand) {
	if a.answered && a.failed && a.end < c.closeTime() {
		c.reportViolation("", a.doneEvent, []int{a.event}, "%s was asked for at %s and refused at %s, and nothing stood against it: %s.", a.action, timeText(a.begin),
			timeText(a.end), c.x.Event(a.doneEvent).Text)
	}
}

// ownerTimeout is how long the owner of a real run waits for an answer.
const ownerTimeout = 2 * time.Minute

// ownerGaveUp reports whether the answer is that its owner did not wait any longer.
func (c *checker) ownerGaveUp(a ownerCommand) bool {
	return c.real && a.failed && a.end-a.begin >= ownerTimeout-c.slack
}

// isOrderUnknown reports whether it is not known in which order a command and another one of the same server were taken. In virtual time
// one is given after the other.
func (c *checker) isOrderUnknown(all []ownerCommand, index int) bool {
	return c.real && slices.ContainsFunc(all, func(b ownerCommand) bool {
		return b.event != all[index].event && b.begin > all[index].begin-c.skew && b.begin < all[index].begin+c.skew
	})
}

// isImmediate are the commands that wait for no attempt.
func isImmediate(a ownerCommand) bool {
	return a.impliedBySet || slices.Contains([]string{"disable", "disconnect", "remove", "configure", "wake"}, a.action)
}

// checkPromptAnswer judges that a command was answered at once after a time.
func (c *checker) checkPromptAnswer(server string, a ownerCommand, from time.Duration) {
	c.judged++
	bound := from + c.skew + c.slack
	if a.answered && a.end <= bound || bound >= c.closeTime() {
		return
	}
	until := "has no answer"
	if a.answered {
		until = "was answered at " + timeText(a.end)
	}
	c.reportViolationAt(bound, server, a.event, nil, "%s was asked for at %s and %s: it waits for no server, and was to be answered by %s.",
		a.action, timeText(a.begin), until, timeText(bound))
}

// checkCommandTime judges when a command was answered.
func (c *checker) checkCommandTime(server string, stays []phaseSpan, all []ownerCommand, a ownerCommand) {
	from := c.waitsUntil(server, all, a)
	if isImmediate(a) {
		if a.impliedBySet {
			from = a.begin
		}
		c.checkPromptAnswer(server, a, from)
		return
	}
	c.judged++
	end := c.closeTime()
	if a.answered {
		end = min(end, a.end)
	}
	slack := c.skew + c.slack
	if slices.ContainsFunc(all, func(b ownerCommand) bool { return b.action == "refresh" && b.begin <= end }) {
		slack += 2 * attemptListTime // who waits for a server waits for the list that another one waits for
	}
	if end <= from {
		return
	}
	k := 0
	var since *phasePiece // what the server has stayed in until now, nil if it is on its way
	for _, p := range splitByPhase(stays, &k, from, end) {
		if p.phase != nil && !isSettled(p.phase) {
			since = nil
			continue
		}
		if since == nil {
			since = &p
		}
		if p.to-since.from <= slack {
			continue
		}
		stateText, shows := "the manager says nothing of the server", -1
		if since.phase != nil {
			stateText, shows = "the server is "+describePhase(since.phase.Event), since.phase.event
		}
		c.reportViolationAt(since.from+slack, server, a.event, []int{shows}, "%s was asked for at %s and %s, and %s from %s on: it had to be answered by %s.",
			a.action, timeText(a.begin), answerText(a), stateText, timeText(since.from), timeText(since.from+slack))
		return
	}
	bound := from + c.attemptTime(server)
	if later := c.stuckDialEnd(server, bound); later > bound {
		bound = later + c.attemptTime(server)
	}
	if end > bound {
		c.reportViolationAt(bound, server, a.event, nil, "%s was asked for at %s and %s: whatever becomes of an attempt, it ends by %s.", a.action,
			timeText(a.begin), answerText(a), timeText(bound))
	}
}

func answerText(a ownerCommand) string {
	if a.answered {
		return "was answered only at " + timeText(a.end)
	}
	return "has no answer"
}

// isSettled reports whether a phase is one in which a server stays until something happens.
func isSettled(s *phaseSpan) bool { return s.Phase != messages.Pending || s.Step == messages.Idle }

// attemptListTime bounds a list of a server that is connected: actors.Timing.ListTimeout, 30 s.
const attemptListTime = 30 * time.Second

// attemptTime is how long an attempt may take that somebody asked for, from the old connection's end on. One that is enabled warm,
// and lost before it is listed, waits for its next attempt once.
func (c *checker) attemptTime(server string) time.Duration {
	bound, _ := c.recoveryBound(server, c.phaseSpans(server), 0)
	for _, a := range c.attemptsOf(server) {
		bound = max(bound, 2*a.retryAfter)
	}
	for _, s := range c.plan.Servers {
		bound += s.ConnectTimeout
	}
	return bound + drainTime + stopLadder + 2*attemptListTime
}

// checkCommandRefusal judges what was refused, and what was not, by what the commands before have made of the server.
func (c *checker) checkCommandRefusal(server string, all []ownerCommand, i int, intent ownerIntent) {
	a := all[i]
	c.judged++
	why := ""
	switch {
	case a.action == "add" || a.action == "respec" || a.action == "adjust":
	case !intent.exists:
		why = "there is no such server"
	case a.action == "reconnect" && !intent.wanted:
		why = "it is disabled"
	}
	overtaken := slices.ContainsFunc(all[i+1:], func(b ownerCommand) bool { return b.action == "remove" && b.begin <= a.end+c.skew })
	switch {
	case a.refused && why == "" && !overtaken:
		c.reportViolation(server, a.doneEvent, []int{a.event}, "%s was asked for at %s and refused at %s, and by the commands before it nothing stands against "+
			"it: %s.", a.action, timeText(a.begin), timeText(a.end), c.x.Event(a.doneEvent).Text)
	case !a.refused && why != "":
		c.reportViolation(server, a.doneEvent, []int{a.event}, "%s was asked for at %s and was to be refused, because by the commands before it %s. It was "+
			"answered at %s as if it could be done.", a.action, timeText(a.begin), why, timeText(a.end))
	}
}

// checkCommandAnswer compares an answer that is no refusal with what was published while the command was carried out.
func (c *checker) checkCommandAnswer(server string, stays []phaseSpan, all []ownerCommand, i int) {
	a := all[i]
	if a.refused {
		return
	}
	wasPublished := func(from time.Duration, ok func(s *phaseSpan) bool) bool {
		for k := range stays {
			if s := &stays[k]; s.T <= a.end+c.skew && (s.to >= from || s.endEvent < 0) && ok(s) {
				return true
			}
		}
		return false
	}
	overtaken := slices.ContainsFunc(all[i+1:], func(b ownerCommand) bool { return b.begin <= a.end+c.skew })
	failed := func(s *phaseSpan) bool {
		return s.Phase == messages.Failed || s.Phase == messages.NeedsAuth || s.Step == messages.Restarting
	}
	switch {
	case a.action == "refresh" && !a.failed:
	case a.failed && isImmediate(a):
		if !overtaken {
			c.reportViolation(server, a.doneEvent, []int{a.event}, "%s was asked for at %s and failed at %s: it can always be done. %s.", a.action, timeText(a.begin),
				timeText(a.end), c.x.Event(a.doneEvent).Text)
		}
	case a.failed:
		if !wasPublished(a.begin-c.skew, failed) {
			c.reportViolation(server, a.doneEvent, []int{a.event}, "%s was asked for at %s and was answered at %s that it failed, and the server is published as "+
				"failed at no time in between: %s.", a.action, timeText(a.begin), timeText(a.end), c.x.Event(a.doneEvent).Text)
		}
	case !isImmediate(a) && !overtaken:
		isAtRest := func(s *phaseSpan) bool {
			return s.Phase == messages.Connected || s.Phase == messages.Disabled || s.Step == messages.Idle
		}
		if !wasPublished(max(a.begin, a.end-c.skew-c.slack), isAtRest) {
			c.reportViolation(server, a.doneEvent, []int{a.event}, "%s was asked for at %s and was answered at %s as done, and the server is neither connected nor "+
				"at rest then.", a.action, timeText(a.begin), timeText(a.end))
		}
	}
}

// checkWantedPresent judges that a server which its owner wants is there, and is not published as disabled; and that one which he has disabled is
// there.
func (c *checker) checkWantedPresent(server string, stays []phaseSpan, own []ownerCommand) {
	wishes := c.wantedStates(server)
	end := c.closeTime()
	for i, w := range wishes {
		if w.wanted != wantConnected && w.wanted != wantDisabled {
			continue
		}
		from, to := w.from, end
		for _, a := range own {
			if a.event == w.event || a.doneEvent >= 0 && a.doneEvent == w.event {
				from = max(from, c.waitsUntil(server, own, a))
			}
		}
		from += c.skew
		if i+1 < len(wishes) {
			to = min(to, wishes[i+1].from)
		}
		if to-from <= c.skew {
			continue
		}
		c.judged++
		k := 0
		for _, p := range splitByPhase(stays, &k, from, to) {
			switch {
			case p.phase == nil && p.to-p.from > c.skew+c.slack:
				c.reportViolationAt(p.from, server, w.event, nil, "The owner has this server since %s, and from %s to %s the manager says nothing of it.",
					timeText(w.from), timeText(p.from), timeText(p.to))
				return
			case p.phase != nil && p.phase.Phase == messages.Disabled && w.wanted == wantConnected && p.to-p.from > c.skew:
				c.reportViolationAt(p.from, server, p.phase.event, []int{w.event}, "The server was wanted by its owner at %s and the manager says %s at %s.",
					timeText(w.from), describePhase(p.phase.Event), timeText(p.from))
				return
			}
		}
	}
}
