package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A specVersion is the owner's description of a server for a stretch of time: from the moment at which it is in force for sure
// to the next adjust. Between to and the next version's from either of the two may be in force.
type specVersion struct {
	from, to time.Duration
	scenario.Server
	event int // the adjust command, -1 for the plan
}

// specVersions returns the descriptions of a server over time: the plan's, and one for each adjust and permit. The result is cached
// because many checks ask for it.
func (c *checker) specVersions(server string) []specVersion {
	if known, ok := c.specVersionCache[server]; ok {
		return known
	}
	far := c.endTime() + time.Hour
	out := []specVersion{{0, far, *c.serverSpec(server), -1}}
	if with := c.settingsByCommand(server); len(with) > 0 {
		commands := c.ownerCommands(server)
		for _, a := range c.describingCommands(server) {
			last := &out[len(out)-1]
			last.to = a.begin
			from := a.begin
			if a.action == "adjust" {
				from = c.waitsUntil(server, commands, a)
			}
			out = append(out, specVersion{from + c.skew + c.slack, far, last.Adjusted(with[c.x.Event(a.event).Command]), a.event})
		}
	}
	if c.specVersionCache == nil {
		c.specVersionCache = map[string][]specVersion{}
	}
	c.specVersionCache[server] = out
	return out
}

// describingCommands are the commands that say something else of a server, in order.
func (c *checker) describingCommands(server string) []ownerCommand {
	all := slices.DeleteFunc(slices.Clone(c.ownerCommands(server)), func(a ownerCommand) bool { return a.action != "adjust" })
	all = append(all, c.permitCommands(server)...)
	slices.SortFunc(all, func(a, b ownerCommand) int { return a.event - b.event })
	return all
}

// specVersionsIn returns every description of a server that may have been in force at any time of a stretch.
func (c *checker) specVersionsIn(server string, from, to time.Duration) []specVersion {
	all := c.specVersions(server)
	if len(all) == 1 {
		return all
	}
	var out []specVersion
	for i, d := range all {
		if i > 0 && all[i-1].to > to+c.instantBound() { // the owner had not given this version yet
			break
		}
		if i+1 < len(all) && all[i+1].from <= from { // the next version was already in force
			continue
		}
		out = append(out, d)
	}
	return out
}

// isLazyOrBounded reports whether a request may have waited for the start of a server, or for a slot among its calls in flight, at any time of a
// stretch.
func (c *checker) isLazyOrBounded(server string, from, to time.Duration) bool {
	return slices.ContainsFunc(c.specVersionsIn(server, from, to), func(d specVersion) bool { return d.Connect == messages.Lazy || d.MaxInFlight > 0 })
}

// isLazy reports whether a server may have been lazy at any time of a stretch.
func (c *checker) isLazy(server string, from, to time.Duration) bool {
	return slices.ContainsFunc(c.specVersionsIn(server, from, to), func(d specVersion) bool { return d.Connect == messages.Lazy })
}

// allowedTools returns the names that a description does not deny, sorted, with commas between, as a catalog event holds them.
func (d *specVersion) allowedTools(names []string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !d.LetsThrough(name) })
	slices.Sort(names)
	return strings.Join(names, ",")
}

// showsList reports whether a catalog shows a list of a server at a time: all of it, or without the tools that a description in
// force then denies, or that are held back.
func (c *checker) showsList(server string, list *history.Event, s catalogSpan, t time.Duration) bool {
	if list.Hash == s.hash || len(list.Names) == 0 && s.count == 0 {
		return true
	}
	return c.plan.Hides(server) && slices.ContainsFunc(c.specVersionsIn(server, t, t), func(d specVersion) bool { return c.leavesOf(server, list, &d, s.tools) })
}

// leavesOf reports whether the shown tools of a server are those of a list that a description leaves, or fewer if some may be held back.
func (c *checker) leavesOf(server string, list *history.Event, d *specVersion, shown string) bool {
	allowed := d.allowedTools(list.Names)
	return allowed == shown || c.plan.HoldsBack(server) && isPartOf(shown, allowed)
}

// isPartOf reports whether each of some tools is among others; both are names with commas between. Which tools are held back is not in
// the record: the simulation judges that.
func isPartOf(some, all string) bool {
	others := strings.Split(all, ",")
	return some == "" || !slices.ContainsFunc(strings.Split(some, ","), func(tool string) bool { return !slices.Contains(others, tool) })
}

// eachAdjustment calls judge for each adjust and permit of a connected server, with the versions before and after it. None of these
// settings needs another connection.
//
//   - The connection stays, and the server stays connected in its epoch: I17.
//   - The catalog shows the tools that the new description allows as soon as the command is answered: I14, and checkFilterShownAtRest for a
//     server that rests.
func (c *checker) eachAdjustment(server string, judge func(a ownerCommand, previous, current specVersion, u connectedSpan)) {
	all := c.specVersions(server)
	if len(all) == 1 {
		return
	}
	commands, ups := c.ownerCommands(server), connectedSpans(c.phaseSpans(server))
	describing := c.describingCommands(server)
	for i := 1; i < len(all); i++ {
		a := describing[i-1]
		on := slices.IndexFunc(ups, func(u connectedSpan) bool { return u.from < a.begin-c.skew && u.to >= a.begin })
		// An adjust that disables the server, that Close overtakes or that another command overtakes proves nothing.
		if on < 0 || all[i].Disabled || all[i].from >= c.closeTime() || c.isOvertaken(commands, a, all[i].from) {
			continue
		}
		judge(a, all[i-1], all[i], ups[on])
	}
}

// checkConnKept judges for I17 that an adjust leaves the connection in place.
func (c *checker) checkConnKept(server string) {
	c.eachAdjustment(server, func(a ownerCommand, previous, current specVersion, u connectedSpan) {
		if c.underFault(server, a.begin-c.skew, current.from) {
			return
		}
		conn := c.connOpenAt(server, a.begin-c.skew)
		if conn == nil || conn.Down >= 0 && c.x.Event(conn.Down).T <= current.from {
			return
		}
		c.judged++
		rested := c.restedUnused(server, u, previous, current)
		if u.to < current.from && u.endEvent >= 0 && !rested { // a lazy server may go to rest meanwhile
			c.reportViolation(server, u.endEvent, []int{a.event}, "The owner adjusted the server at %s, which needs no other connection, and it was %s at %s instead "+
				"of connected in epoch %d.", timeText(a.begin), describePhase(c.x.Event(u.endEvent)), timeText(u.to), u.epoch)
			return
		}
		for _, other := range c.x.Conns(server) {
			if t, ok := c.x.Time(other.Open); ok && t >= a.begin && t <= current.from && (!rested || t < u.to) { // a call may wake a server that rests
				c.reportViolation(server, other.Open, []int{a.event}, "The owner adjusted the server at %s, which needs no other connection, and it was dialled at "+
					"%s.", timeText(a.begin), timeText(t))
				return
			}
		}
	})
}

// restedUnused reports whether a connected span ended because a lazy server rested, and no call had used the connection for the
// shorter one of two idle timeouts.
func (c *checker) restedUnused(server string, u connectedSpan, previous, current specVersion) bool {
	if u.endEvent < 0 || c.x.Event(u.endEvent).Step != messages.Idle {
		return false
	}
	unused := current.IdleTimeout
	if previous.Connect == messages.Lazy && previous.IdleTimeout > 0 && (unused == 0 || previous.IdleTimeout < unused) {
		unused = previous.IdleTimeout
	}
	since := u.to - unused + c.instantBound()
	return !slices.ContainsFunc(c.callsOf(server), func(call *history.CallRecord) bool {
		return slices.ContainsFunc(call.Received, func(i int) bool { return c.x.Event(i).T > since && c.x.Event(i).T <= u.to })
	})
}

// checkFilterShown judges for I14 that another filter shows with the answer to its command: newly denied tools leave the
// catalog, and newly allowed ones come.
func (c *checker) checkFilterShown(server string, l listChanges, all []catalogSpan) {
	if !c.plan.Denies(server) {
		return
	}
	c.eachAdjustment(server, func(a ownerCommand, previous, current specVersion, u connectedSpan) {
		t := current.from
		if u.to <= t+c.skew || current.to <= t || c.registryBroke(a.begin-registryPause-c.skew, t) {
			return
		}
		n, _ := slices.BinarySearchFunc(all, t+1, func(s catalogSpan, t time.Duration) int { return int(s.from - t) })
		// The tools of a lost or cached server, and those from before the adjust, do not show this filter.
		if n == 0 || all[n-1].state == "lost" || all[n-1].state == "cached" || all[n-1].from >= a.begin-c.skew && slices.Equal(previous.Denied, current.Denied) && slices.Equal(previous.Refused, current.Refused) {
			return
		}
		now := all[n-1]
		// A server that offers more than tools may be connected without a list, and then shows none, whatever its filter is.
		if conn := c.connOf(server, u); now.count == 0 && c.serverSpec(server).Offers && conn != nil && !c.hasListed(conn, t) {
			return
		}
		c.judged++
		if slices.ContainsFunc(l.changes, func(i int) bool { return c.x.Event(i).T <= t && c.leavesOf(server, c.x.Event(i), &current, now.tools) }) {
			return
		}
		c.reportViolationAt(t, server, now.event, []int{a.event}, "The owner denied the tools %q of the server at %s, and the catalog showed at %s those that are "+
			"not offered then, or not all that are: %s.", strings.Join(slices.Concat(current.Denied, current.Refused), ", "), timeText(a.begin), timeText(t), now.tools)
	})
}

// checkFilterShownAtRest judges for I14 that another filter shows also of a lazy server that rests: the manager does not connect it for that, and
// offers the tools of its last connection all the while.
func (c *checker) checkFilterShownAtRest(server string, l listChanges, all []catalogSpan) {
	if c.real || !c.plan.Denies(server) {
		return
	}
	commands, stays, describing := c.ownerCommands(server), c.phaseSpans(server), c.describingCommands(server)
	for i, current := range c.specVersions(server) {
		if i == 0 {
			continue
		}
		a, t := describing[i-1], current.from
		rests := slices.ContainsFunc(stays, func(s phaseSpan) bool {
			return s.Step == messages.Idle && s.T < a.begin-c.skew && (s.to > t+c.skew || s.endEvent < 0)
		})
		if !rests || current.to <= t || t >= c.closeTime() || c.isOvertaken(commands, a, t) || c.registryBroke(a.begin-registryPause-c.skew, t) {
			continue
		}
		n, _ := slices.BinarySearchFunc(all, t+1, func(s catalogSpan, t time.Duration) int { return int(s.from - t) })
		if n == 0 || all[n-1].state != "cached" {
			continue
		}
		now := all[n-1]
		c.judged++
		if slices.ContainsFunc(l.changes, func(i int) bool { return c.x.Event(i).T <= t && c.leavesOf(server, c.x.Event(i), &current, now.tools) }) {
			continue
		}
		c.reportViolationAt(t, server, now.event, []int{a.event}, "The owner denied the tools %q of the server at %s, while it rested, and the catalog showed at %s those that "+
			"are not offered then, or not all that are: %s.", strings.Join(slices.Concat(current.Denied, current.Refused), ", "), timeText(a.begin), timeText(t), now.tools)
	}
}

// registryPause is how long after its third panic the successor of the registry comes.
const registryPause = time.Second

// registryBroke reports whether the registry panicked in a stretch of time.
func (c *checker) registryBroke(from, to time.Duration) bool {
	return slices.ContainsFunc(c.x.ServerEvents(""), func(i int) bool {
		e := c.x.Event(i)
		return e.Kind == history.FaultOn && e.Name == history.BrokenActor && e.T >= from && e.T <= to
	})
}

// checkDeniedCalls judges for I14 that no server receives a call of a tool which is denied in every version that may be in
// force.
func (c *checker) checkDeniedCalls(server string) {
	if !c.plan.Denies(server) {
		return
	}
	for _, call := range c.x.Calls() {
		if call.Server != server || call.Begin < 0 || len(call.Received) == 0 {
			continue
		}
		begin := c.x.Event(call.Begin)
		c.judged++
		if !slices.ContainsFunc(c.specVersionsIn(server, begin.T, c.x.Event(call.Received[0]).T), func(d specVersion) bool { return d.LetsThrough(begin.Tool) }) {
			c.reportViolation(server, call.Received[0], []int{call.Begin}, "Call %s of tool %s began at %s, when the owner had denied the tool, and its server "+
				"received it at %s.", call.ID, begin.Tool, timeText(begin.T), timeText(c.x.Event(call.Received[0]).T))
		}
	}
}
