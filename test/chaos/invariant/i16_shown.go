package invariant

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// checkShownWithAnswer is I16 for what a program finds in the catalog when its command is answered as done. It is judged only
// in virtual time, where nothing can come between the answer and the look.
//
//   - After disable, disconnect and remove there is no tool of the server: they "return after the admission gate is closed and
//     the snapshot is published".
//   - After enable, reconnect, add and respec a server that is connected has tools, if its list has any.
//   - After refresh the catalog shows a list that was true at the command or later.
func (c *checker) checkShownWithAnswer(server string, stays []phaseSpan, all []ownerCommand, i int) {
	a := all[i]
	if c.real || a.failed || a.ofAll || slices.ContainsFunc(all[i+1:], func(b ownerCommand) bool { return b.begin <= a.end+c.instantBound() }) {
		return
	}
	done := c.x.Event(a.doneEvent)
	switch a.action {
	case "disable", "disconnect", "remove":
		c.judged++
		if done.Tools > 0 {
			c.reportViolation(server, a.doneEvent, []int{a.event}, "The owner asked for %s at %s, was answered at %s, and the catalog still showed %d tools of the server then.",
				a.action, timeText(a.begin), timeText(a.end), done.Tools)
		}
	case "enable", "reconnect", "add", "respec":
		c.checkToolsShown(server, stays, a)
	case "refresh":
		c.checkRefreshShown(server, stays, a)
	}
}

// connectedThroughout reports whether a server was connected without a break from before a time until after another, or in the
// whole instant of both.
func (c *checker) connectedThroughout(stays []phaseSpan, from, to time.Duration) bool {
	return slices.ContainsFunc(connectedSpans(stays), func(u connectedSpan) bool { return u.from <= from && (u.to > to || u.endEvent < 0) })
}

// checkToolsShown judges that a command which connected a server is not answered before its tools are there.
func (c *checker) checkToolsShown(server string, stays []phaseSpan, a ownerCommand) {
	l := c.listChangesOf(server)
	known := c.changeBefore(l, a.end)
	if known < 0 || c.plan.Hides(server) || c.serverSpec(server).Offers || !c.connectedThroughout(stays, a.end, a.end) || c.underFault(server, a.begin, a.end) {
		return
	}
	// A list that has changed a moment ago may not be the one that was asked for.
	if slices.ContainsFunc(l.changes[:known+1], func(i int) bool { return c.x.Event(i).T >= a.begin }) || len(c.x.Event(l.changes[known]).Names) == 0 {
		return
	}
	c.judged++
	if c.x.Event(a.doneEvent).Tools == 0 {
		c.reportViolation(server, a.doneEvent, []int{a.event}, "The owner asked for %s at %s, was answered at %s as done, and the catalog showed no tool of the server then.",
			a.action, timeText(a.begin), timeText(a.end))
	}
}

// checkRefreshShown judges that a refresh is not answered before the catalog shows a list that is as young as the command. A
// list that cannot be read leaves the earlier one, so faults that keep the server from sending it are left out.
func (c *checker) checkRefreshShown(server string, stays []phaseSpan, a ownerCommand) {
	spec := c.serverSpec(server)
	if c.plan.Hides(server) || spec.Offers || !c.connectedThroughout(stays, a.begin-c.skew, a.end) || c.isHindered(server, a.begin-listTimeout, a.end) {
		return
	}
	l := c.listChangesOf(server)
	known := c.changeBefore(l, a.begin)
	if known < 0 {
		return
	}
	if slices.ContainsFunc(c.x.ServerEvents(server), func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.Answered && e.Method == "tools/list" && e.Code != 0 && e.T >= a.begin-c.skew && e.T <= a.end
	}) {
		return // the server refused the list
	}
	done := c.x.Event(a.doneEvent)
	young := func(i int) bool {
		e := c.x.Event(i)
		return e.T <= a.end && (e.Hash == done.Hash || len(e.Names) == 0 && done.Tools == 0)
	}
	// The pages of a list that changes while it is read may be of two states.
	changed := known+1 < len(l.changes) && c.x.Event(l.changes[known+1]).T <= a.end
	if changed && spec.Pages > 1 {
		return
	}
	// A change in the instant of the command may have been made after it.
	first := known
	for first > 0 && c.x.Event(l.changes[first]).T >= a.begin-c.instantBound() {
		first--
	}
	c.judged++
	if slices.ContainsFunc(l.changes[first:], young) {
		return
	}
	c.reportViolation(server, a.doneEvent, []int{l.changes[known], a.event}, "The owner asked for refresh at %s, was answered at %s, and the catalog then showed %d tools that "+
		"are not the list of the server since %s.", timeText(a.begin), timeText(a.end), done.Tools, timeText(c.x.Event(l.changes[known]).T))
}
