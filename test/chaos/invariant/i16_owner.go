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
var owner = check("I16", "the owner's commands",
	"Each command is answered within its bound and refused only for a documented reason; what is wanted follows from their order.",
	"The owner asked for nothing.",
	func(c *court) {
		c.set()
		for _, a := range c.commands("") {
			if a.do == "configure" || a.do == "wake" {
				c.prompt("", a, a.begin)
				c.accepted(a)
			}
		}
		for _, server := range c.x.Servers() {
			if c.spec[server] == nil {
				continue
			}
			var own []asked
			for _, a := range c.commands(server) {
				if !a.everyServer {
					own = append(own, a)
				}
			}
			stays, stood := c.stays(server), c.standings(server, own)
			for i, a := range own {
				if a.begin >= c.closing() {
					break
				}
				c.answeredInTime(server, stays, own, a)
				if a.answered && a.end < c.closing() && !a.part && !c.crowded(own, i) && !c.impatient(a) {
					c.refusal(server, own, i, stood[i])
					c.truthful(server, stays, own, i)
				}
			}
			c.wanted(server, stays, own)
		}
	})

// set judges that the first set of servers, which no command stands for, was accepted.
func (c *court) set() {
	for _, i := range c.x.Of("") {
		if e := c.x.Event(i); e.Kind == history.Done && e.Command == 0 && e.Text != "" {
			c.looked++
			c.violated("", i, nil, "The first set of servers was refused at %s: %s.", clock(e.T), e.Text)
		}
	}
}

// accepted judges that what is asked of the whole manager is not refused.
func (c *court) accepted(a asked) {
	if a.answered && a.failed && a.end < c.closing() {
		c.violated("", a.done, []int{a.at}, "%s was asked for at %s and refused at %s, and nothing stood against it: %s.", a.do, clock(a.begin),
			clock(a.end), c.x.Event(a.done).Text)
	}
}

// waitsFor is how long the owner of a real run waits for an answer.
const waitsFor = 2 * time.Minute

// impatient reports whether the answer is that its owner did not wait any longer.
func (c *court) impatient(a asked) bool {
	return c.real && a.failed && a.end-a.begin >= waitsFor-c.late
}

// crowded reports whether it is not known in which order a command and another one of the same server were taken. In virtual time
// one is given after the other.
func (c *court) crowded(all []asked, of int) bool {
	return c.real && slices.ContainsFunc(all, func(b asked) bool {
		return b.at != all[of].at && b.begin > all[of].begin-c.moment && b.begin < all[of].begin+c.moment
	})
}

// atOnce are the commands that wait for no attempt.
func atOnce(a asked) bool {
	return a.part || slices.Contains([]string{"disable", "disconnect", "remove", "configure", "wake"}, a.do)
}

// prompt judges that a command was answered at once after a time.
func (c *court) prompt(server string, a asked, from time.Duration) {
	c.looked++
	bound := from + c.moment + c.late
	if a.answered && a.end <= bound || bound >= c.closing() {
		return
	}
	until := "has no answer"
	if a.answered {
		until = "was answered at " + clock(a.end)
	}
	c.violatedAt(bound, server, a.at, nil, "%s was asked for at %s and %s: it waits for no server, and was to be answered by %s.",
		a.do, clock(a.begin), until, clock(bound))
}

// answeredInTime judges when a command was answered.
func (c *court) answeredInTime(server string, stays []stay, all []asked, a asked) {
	from := c.held(server, all, a)
	if atOnce(a) {
		if a.part {
			from = a.begin
		}
		c.prompt(server, a, from)
		return
	}
	c.looked++
	end := c.closing()
	if a.answered {
		end = min(end, a.end)
	}
	slack := c.moment + c.late
	if slices.ContainsFunc(all, func(b asked) bool { return b.do == "refresh" && b.begin <= end }) {
		slack += 2 * listTime // who waits for a server waits for the list that another one waits for
	}
	if end <= from {
		return
	}
	k := 0
	var since *piece // what the server has stayed in until now, nil if it is on its way
	for _, p := range split(stays, &k, from, end) {
		if p.phase != nil && !settled(p.phase) {
			since = nil
			continue
		}
		if since == nil {
			since = &p
		}
		if p.to-since.from <= slack {
			continue
		}
		is, shows := "the manager says nothing of the server", -1
		if since.phase != nil {
			is, shows = "the server is "+describe(since.phase.Event), since.phase.at
		}
		c.violatedAt(since.from+slack, server, a.at, []int{shows}, "%s was asked for at %s and %s, and %s from %s on: it had to be answered by %s.",
			a.do, clock(a.begin), unanswered(a), is, clock(since.from), clock(since.from+slack))
		return
	}
	bound := from + c.attemptTime(server)
	if later := c.stuck(server, bound); later > bound {
		bound = later + c.attemptTime(server)
	}
	if end > bound {
		c.violatedAt(bound, server, a.at, nil, "%s was asked for at %s and %s: whatever becomes of an attempt, it ends by %s.", a.do,
			clock(a.begin), unanswered(a), clock(bound))
	}
}

func unanswered(a asked) string {
	if a.answered {
		return "was answered only at " + clock(a.end)
	}
	return "has no answer"
}

// settled reports whether a phase is one in which a server stays until something happens.
func settled(s *stay) bool { return s.Phase != messages.Pending || s.Step == messages.Idle }

// listTime bounds a list of a server that is connected: actors.Timing.ListTimeout, 30 s.
const listTime = 30 * time.Second

// attemptTime is how long an attempt may take that somebody asked for, from the old connection's end on. One that is enabled warm,
// and lost before it is listed, waits for its next attempt once.
func (c *court) attemptTime(server string) time.Duration {
	bound, _ := c.recovery(server, c.stays(server), 0)
	for _, a := range c.attempts(server) {
		bound = max(bound, 2*a.retryAfter)
	}
	for _, s := range c.plan.Servers {
		bound += s.ConnectTimeout
	}
	return bound + drain + stopLadder + 2*listTime
}

// refusal judges what was refused, and what was not, by what the commands before have made of the server.
func (c *court) refusal(server string, all []asked, i int, was standing) {
	a := all[i]
	c.looked++
	why := ""
	switch {
	case a.do == "add" || a.do == "respec" || a.do == "adjust":
	case !was.there:
		why = "there is no such server"
	case a.do == "reconnect" && !was.wanted:
		why = "it is disabled"
	}
	overtaken := slices.ContainsFunc(all[i+1:], func(b asked) bool { return b.do == "remove" && b.begin <= a.end+c.moment })
	switch {
	case a.refused && why == "" && !overtaken:
		c.violated(server, a.done, []int{a.at}, "%s was asked for at %s and refused at %s, and by the commands before it nothing stands against "+
			"it: %s.", a.do, clock(a.begin), clock(a.end), c.x.Event(a.done).Text)
	case !a.refused && why != "":
		c.violated(server, a.done, []int{a.at}, "%s was asked for at %s and was to be refused, because by the commands before it %s. It was "+
			"answered at %s as if it could be done.", a.do, clock(a.begin), why, clock(a.end))
	}
}

// truthful compares an answer that is no refusal with what was published while the command was carried out.
func (c *court) truthful(server string, stays []stay, all []asked, i int) {
	a := all[i]
	if a.refused {
		return
	}
	seen := func(from time.Duration, ok func(s *stay) bool) bool {
		for k := range stays {
			if s := &stays[k]; s.T <= a.end+c.moment && (s.to >= from || s.next < 0) && ok(s) {
				return true
			}
		}
		return false
	}
	overtaken := slices.ContainsFunc(all[i+1:], func(b asked) bool { return b.begin <= a.end+c.moment })
	failed := func(s *stay) bool {
		return s.Phase == messages.Failed || s.Phase == messages.NeedsAuth || s.Step == messages.Restarting
	}
	switch {
	case a.do == "refresh" && !a.failed:
	case a.failed && atOnce(a):
		if !overtaken {
			c.violated(server, a.done, []int{a.at}, "%s was asked for at %s and failed at %s: it can always be done. %s.", a.do, clock(a.begin),
				clock(a.end), c.x.Event(a.done).Text)
		}
	case a.failed:
		if !seen(a.begin-c.moment, failed) {
			c.violated(server, a.done, []int{a.at}, "%s was asked for at %s and was answered at %s that it failed, and the server is published as "+
				"failed at no time in between: %s.", a.do, clock(a.begin), clock(a.end), c.x.Event(a.done).Text)
		}
	case !atOnce(a) && !overtaken:
		rests := func(s *stay) bool {
			return s.Phase == messages.Connected || s.Phase == messages.Disabled || s.Step == messages.Idle
		}
		if !seen(max(a.begin, a.end-c.moment-c.late), rests) {
			c.violated(server, a.done, []int{a.at}, "%s was asked for at %s and was answered at %s as done, and the server is neither connected nor "+
				"at rest then.", a.do, clock(a.begin), clock(a.end))
		}
	}
}

// wanted judges that a server which its owner wants is there, and is not published as disabled; and that one which he has disabled is
// there.
func (c *court) wanted(server string, stays []stay, own []asked) {
	wishes := c.wishes(server)
	end := c.closing()
	for i, w := range wishes {
		if w.wish != on && w.wish != off {
			continue
		}
		from, to := w.from, end
		for _, a := range own {
			if a.at == w.at || a.done >= 0 && a.done == w.at {
				from = max(from, c.held(server, own, a))
			}
		}
		from += c.moment
		if i+1 < len(wishes) {
			to = min(to, wishes[i+1].from)
		}
		if to-from <= c.moment {
			continue
		}
		c.looked++
		k := 0
		for _, p := range split(stays, &k, from, to) {
			switch {
			case p.phase == nil && p.to-p.from > c.moment+c.late:
				c.violatedAt(p.from, server, w.at, nil, "The owner has this server since %s, and from %s to %s the manager says nothing of it.",
					clock(w.from), clock(p.from), clock(p.to))
				return
			case p.phase != nil && p.phase.Phase == messages.Disabled && w.wish == on && p.to-p.from > c.moment:
				c.violatedAt(p.from, server, p.phase.at, []int{w.at}, "The server was wanted by its owner at %s and the manager says %s at %s.",
					clock(w.from), describe(p.phase.Event), clock(p.from))
				return
			}
		}
	}
}
