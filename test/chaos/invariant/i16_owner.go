package invariant

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// I16: the manager obeys its owner and answers him. The check computes what the owner wants of a server from the order of his
// commands alone, and compares it with what the manager publishes and answers.
//
//   - The manager answers each command: at once those that end something and those that replace the set of servers, and those
//     that start a server as soon as the server is published in a phase in which it stays: connected, failed, in need of
//     credentials, disabled or at rest.
//   - It refuses a command for one of two reasons, and then always: there is no such server, or the server is disabled and was
//     to be reconnected.
//   - An answer is true: nil when the server is connected, rests or is not wanted, and an error when it failed.
//   - A server that is wanted is published, and not as disabled.
//   - With the answer the catalog shows what was done: see checkShownWithAnswer. A refusal of the list answers a refresh: see
//     checkRefreshRefused.
var ownerCheck = newCheck("I16", "the owner's commands",
	"Each command is answered within its bound and refused only for a documented reason; what is wanted follows from their order.",
	"The owner asked for nothing.",
	func(c *checker) {
		c.checkFirstSet()
		for _, a := range c.ownerCommands("") {
			if a.action == "configure" || a.action == "wake" {
				c.reportLate(c.findLatePrompt("", a, a.begin))
				c.checkAccepted(a)
			}
		}
		wholes := wholeAnswers{}
		for _, server := range c.x.Servers() {
			// A server without a spec in the plan is one that the harness knows nothing about.
			if c.spec[server] == nil {
				continue
			}
			// Commands for every server were judged above and say nothing about this one's wanted state.
			var own []ownerCommand
			for _, a := range c.ownerCommands(server) {
				if !a.everyServer {
					own = append(own, a)
				}
			}
			stays, intents := c.phaseSpans(server), c.intentsBefore(server, own)
			for i, a := range own {
				// Close overtakes every command that begins after it.
				if a.begin >= c.closeTime() {
					break
				}
				if late := c.findLateAnswer(server, stays, own, a); a.ofAll {
					number := c.x.Event(a.event).Command
					wholes[number] = append(wholes[number], late)
				} else {
					c.reportLate(late)
				}
				c.checkRefreshRefused(server, stays, a)
				// In a real run two commands within the skew have no known order, and an owner who gave up says nothing about
				// the manager.
				if a.answered && a.end < c.closeTime() && !a.impliedBySet && !c.isOrderUnknown(own, i) && !c.ownerGaveUp(a) {
					c.checkCommandRefusal(server, own, i, intents[i])
					c.checkCommandAnswer(server, stays, own, i)
					c.checkShownWithAnswer(server, stays, own, i)
				}
			}
			c.checkWantedPresent(server, stays, own)
		}
		wholes.reportLast(c)
	})

// checkFirstSet judges that the manager accepted the first set of servers. The plan holds no command for that set, so its Done
// event has the command number 0.
func (c *checker) checkFirstSet() {
	for _, i := range c.x.ServerEvents("") {
		if e := c.x.Event(i); e.Kind == history.Done && e.Command == 0 && e.Text != "" {
			c.judged++
			c.reportViolation("", i, nil, "The first set of servers was refused at %s: %s.", timeText(e.T), e.Text)
		}
	}
}

// checkAccepted judges that the manager does not refuse a command for the whole manager (configure, wake).
func (c *checker) checkAccepted(a ownerCommand) {
	if a.answered && a.failed && a.end < c.closeTime() {
		c.reportViolation("", a.doneEvent, []int{a.event}, "The owner asked for %s at %s, and that was refused at %s, and nothing stood against it: %s.", a.action, timeText(a.begin),
			timeText(a.end), c.x.Event(a.doneEvent).Text)
	}
}

// ownerTimeout bounds how long the owner of a real run waits for an answer.
const ownerTimeout = 2 * time.Minute

// ownerGaveUp reports whether a command failed because its owner stopped waiting. Such an end is the harness's own deadline and
// no answer of the manager.
func (c *checker) ownerGaveUp(a ownerCommand) bool {
	return c.real && a.failed && a.end-a.begin >= ownerTimeout-c.slack
}

// isOrderUnknown reports whether the manager may have taken another command of the same server before or after this one. In
// virtual time the owner gives one after the other, so the order is always known.
func (c *checker) isOrderUnknown(all []ownerCommand, index int) bool {
	return c.real && slices.ContainsFunc(all, func(b ownerCommand) bool {
		return b.event != all[index].event && b.begin > all[index].begin-c.skew && b.begin < all[index].begin+c.skew
	})
}

// isImmediate reports whether a command waits for no attempt.
func isImmediate(a ownerCommand) bool {
	return a.impliedBySet || slices.Contains([]string{"disable", "disconnect", "remove", "configure", "wake"}, a.action)
}

// A lateAnswer is what proves that a command had to be answered by a time and was not.
type lateAnswer struct {
	due    time.Duration
	server string
	// event is the command, shows the phase that proves it, -1 if none does.
	event, shows int
	text         string
}

// reportLate reports a late answer as a violation; nil is none.
func (c *checker) reportLate(l *lateAnswer) {
	if l != nil {
		c.reportViolationAt(l.due, l.server, l.event, []int{l.shows}, "%s", l.text)
	}
}

// findLatePrompt returns the proof that a command was not answered by from plus the tolerances, nil if it was.
func (c *checker) findLatePrompt(server string, a ownerCommand, from time.Duration) *lateAnswer {
	c.judged++
	bound := from + c.skew + c.slack
	if a.answered && a.end <= bound || bound >= c.closeTime() {
		return nil
	}
	until := "has no answer"
	if a.answered {
		until = "was answered at " + timeText(a.end)
	}
	return &lateAnswer{bound, server, a.event, -1, fmt.Sprintf("The owner asked for %s at %s, and that %s: it waits for no server, and was to be answered by %s.",
		a.action, timeText(a.begin), until, timeText(bound))}
}

// findLateAnswer returns the proof that a command was not answered as soon as its server stayed in one phase, and at the latest
// when the slowest attempt ends; nil if it was.
func (c *checker) findLateAnswer(server string, stays []phaseSpan, all []ownerCommand, a ownerCommand) *lateAnswer {
	if c.x.Event(a.event).Command > history.Renewal {
		return nil
	}
	// A server that is added again starts only when the connection before it is gone.
	from := c.waitsUntil(server, all, a)
	if isImmediate(a) {
		if a.impliedBySet {
			// SetServers is answered when the set is accepted, before the removals that it implies.
			from = a.begin
		}
		return c.findLatePrompt(server, a, from)
	}
	c.judged++
	end := c.closeTime()
	if a.answered {
		end = min(end, a.end)
	}
	slack := c.skew + c.slack
	if slices.ContainsFunc(all, func(b ownerCommand) bool { return b.action == "refresh" && b.begin <= end }) {
		slack += 2 * attemptListTime // a caller who waits for a server also waits for the list that a refresh has requested
	}
	if end <= from {
		return nil
	}
	// A stretch of stable phases that lasts longer than the tolerance must have ended the wait.
	k := 0
	var since *phasePiece // the start of the settled stretch; nil while the server is on its way
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
		return &lateAnswer{since.from + slack, server, a.event, shows, fmt.Sprintf("The owner asked for %s at %s, and that %s, and %s from %s on: it had to be answered by %s.",
			a.action, timeText(a.begin), answerText(a), stateText, timeText(since.from), timeText(since.from+slack))}
	}
	// A server that never settles is bounded by the time of one attempt; a stuck dial delays it.
	bound := from + c.attemptTime(server)
	if later := c.stuckDialEnd(server, bound); later > bound {
		bound = later + c.attemptTime(server)
	}
	if end <= bound {
		return nil
	}
	was, shows := "", -1
	if at := slices.IndexFunc(stays, func(s phaseSpan) bool { return s.T <= bound && bound < s.to }); at >= 0 {
		was, shows = fmt.Sprintf(" At %s the server was %s.", timeText(bound), c.describeSpan(&stays[at])), stays[at].event
	}
	return &lateAnswer{bound, server, a.event, shows, fmt.Sprintf("The owner asked for %s at %s, and that %s: whatever becomes of an attempt, it ends by %s.%s", a.action,
		timeText(a.begin), answerText(a), timeText(bound), was)}
}

// wholeAnswers collects, by the number of a command to all servers, by when each server was done with it.
type wholeAnswers map[int][]*lateAnswer

// reportLast reports a command to all servers that was not answered when the last of them was done; a server without a proof may
// have taken until the answer.
func (w wholeAnswers) reportLast(c *checker) {
	for _, number := range slices.Sorted(maps.Keys(w)) {
		var last *lateAnswer
		for _, l := range w[number] {
			if l == nil {
				last = nil
				break
			}
			if last == nil || l.due > last.due {
				last = l
			}
		}
		c.reportLate(last)
	}
}

// answerText describes for a violation whether and when a command was answered.
func answerText(a ownerCommand) string {
	if a.answered {
		return "was answered only at " + timeText(a.end)
	}
	return "has no answer"
}

// isSettled reports whether a server stays in a phase until an event moves it: every phase but pending, and the idle step of a
// lazy server.
func isSettled(s *phaseSpan) bool { return s.Phase != messages.Pending || s.Step == messages.Idle }

// attemptListTime bounds a tool list of a connected server: actors.Timing.ListTimeout, 30 s.
const attemptListTime = 30 * time.Second

// attemptTime bounds the attempt that a command requests, counted from the end of the old connection: its recovery, the connect
// timeouts of all servers, which may hold the gate, a drain, a stop and two lists. A server that is enabled warm, and lost
// before it is listed, waits once for its next attempt.
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

// checkCommandRefusal compares the refusal of a command, or the lack of it, with the state in which the commands before it have
// left the server.
func (c *checker) checkCommandRefusal(server string, all []ownerCommand, i int, intent ownerIntent) {
	a := all[i]
	c.judged++
	why := ""
	switch {
	// These three name their server and bring it into being if it is missing.
	case a.action == "add" || a.action == "respec" || a.action == "adjust":
	case !intent.exists:
		why = "there is no such server"
	case a.action == "reconnect" && !intent.wanted:
		why = "the server is disabled"
		if i > 0 {
			why += fmt.Sprintf(" (the last one was %s at %s)", all[i-1].action, timeText(all[i-1].begin))
		}
	}
	// A removal that came before the answer may have been carried out first.
	overtaken := slices.ContainsFunc(all[i+1:], func(b ownerCommand) bool { return b.action == "remove" && b.begin <= a.end+c.skew })
	switch {
	case a.refused && why == "" && !overtaken:
		c.reportViolation(server, a.doneEvent, []int{a.event}, "The owner asked for %s at %s, and that was refused at %s, though by the commands before it nothing stands "+
			"against it: %s.", a.action, timeText(a.begin), timeText(a.end), c.x.Event(a.doneEvent).Text)
	case !a.refused && why != "":
		c.reportViolation(server, a.doneEvent, []int{a.event}, "The owner asked for %s at %s, and that had to be refused, because by the commands before it %s. It "+
			"was answered at %s as if it could be done.", a.action, timeText(a.begin), why, timeText(a.end))
	}
}

// checkCommandAnswer compares an answer that is no refusal with the phases that the manager published while it carried out the
// command.
func (c *checker) checkCommandAnswer(server string, stays []phaseSpan, all []ownerCommand, i int) {
	a := all[i]
	if a.refused {
		return
	}
	// wasPublished reports whether a phase between from and the answer satisfies ok.
	wasPublished := func(from time.Duration, ok func(s *phaseSpan) bool) bool {
		for k := range stays {
			if s := &stays[k]; s.T <= a.end+c.skew && (s.to >= from || s.endEvent < 0) && ok(s) {
				return true
			}
		}
		return false
	}
	// With a later command before the answer the phases may be that command's.
	overtaken := slices.ContainsFunc(all[i+1:], func(b ownerCommand) bool { return b.begin <= a.end+c.skew })
	failed := func(s *phaseSpan) bool {
		return s.Phase == messages.Failed || s.Phase == messages.NeedsAuth || s.Step == messages.Restarting
	}
	switch {
	// A refresh may succeed in any phase: it only lists the tools again.
	case a.action == "refresh" && !a.failed:
	case a.failed && isImmediate(a):
		if !overtaken {
			c.reportViolation(server, a.doneEvent, []int{a.event}, "The owner asked for %s at %s, and that failed at %s: it can always be done. %s.", a.action, timeText(a.begin),
				timeText(a.end), c.x.Event(a.doneEvent).Text)
		}
	case a.failed:
		if !wasPublished(a.begin-c.skew, failed) {
			c.reportViolation(server, a.doneEvent, []int{a.event}, "The owner asked for %s at %s, and that was answered at %s that it failed, and the server is published as "+
				"failed at no time in between: %s.", a.action, timeText(a.begin), timeText(a.end), c.x.Event(a.doneEvent).Text)
		}
	case !isImmediate(a) && !overtaken:
		isAtRest := func(s *phaseSpan) bool {
			return s.Phase == messages.Connected || s.Phase == messages.Disabled || s.Step == messages.Idle
		}
		from := max(a.begin, a.end-c.skew-c.slack)
		if a.ofAll {
			from = a.begin // another server may have taken longer
		}
		if !wasPublished(from, isAtRest) {
			c.reportViolation(server, a.doneEvent, []int{a.event}, "The owner asked for %s at %s, and that was answered at %s as done, and the server is neither connected nor "+
				"at rest then.", a.action, timeText(a.begin), timeText(a.end))
		}
	}
}

// checkWantedPresent judges that the manager publishes a server which its owner wants, and not as disabled, and that it also
// publishes one which he has disabled.
func (c *checker) checkWantedPresent(server string, stays []phaseSpan, own []ownerCommand) {
	wishes := c.wantedStates(server)
	end := c.closeTime()
	for i, w := range wishes {
		if w.wanted != wantConnected && w.wanted != wantDisabled {
			continue
		}
		from, to := w.from, end
		// A server that is added again may be absent until its removal is done.
		for _, a := range own {
			if a.event == w.event || a.doneEvent >= 0 && a.doneEvent == w.event {
				from = max(from, c.waitsUntil(server, own, a))
			}
		}
		from += c.skew
		if i+1 < len(wishes) {
			to = min(to, wishes[i+1].from)
		}
		// The two ends of a shorter stretch are not certain.
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
