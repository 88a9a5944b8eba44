package invariant

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// described is a server as its owner described it, for a stretch of time: from the moment at which the description is in force for sure to the
// next word about it. Between to and the next from nobody can say which one counts.
type described struct {
	from, to time.Duration
	scenario.Server
	at int // the command, -1 for the plan
}

// descriptions is what an owner said of a server over time: the plan, and each adjust.
func (c *court) descriptions(server string) []described {
	if known, ok := c.told[server]; ok {
		return known
	}
	far := c.end() + time.Hour
	out := []described{{0, far, *c.server(server), -1}}
	with := map[int]map[string]string{}
	for _, o := range c.plan.Commands {
		if o.Do == "adjust" && o.Server == server {
			with[o.ID] = o.With
		}
	}
	if len(with) > 0 {
		commands := c.commands(server)
		for _, a := range commands {
			if a.do != "adjust" {
				continue
			}
			last := &out[len(out)-1]
			last.to = a.begin
			out = append(out, described{c.held(server, commands, a) + c.moment + c.late, far,
				last.Adjusted(with[c.x.Event(a.at).Command]), a.at})
		}
	}
	if c.told == nil {
		c.told = map[string][]described{}
	}
	c.told[server] = out
	return out
}

// describedIn is every description of a server that may have been in force at any time of a stretch.
func (c *court) describedIn(server string, from, to time.Duration) []described {
	all := c.descriptions(server)
	if len(all) == 1 {
		return all
	}
	var out []described
	for i, d := range all {
		if i > 0 && all[i-1].to > to+c.atOnce() { // it was not said yet
			break
		}
		if i+1 < len(all) && all[i+1].from <= from { // another one counts
			continue
		}
		out = append(out, d)
	}
	return out
}

// isLazy reports whether a server may have been lazy in a stretch of time.
func (c *court) isLazy(server string, from, to time.Duration) bool {
	return slices.ContainsFunc(c.describedIn(server, from, to), func(d described) bool { return d.Connect == messages.Lazy })
}

// offers is which of some tools a description lets through, sorted, with commas between.
func (d *described) offers(names []string) string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(d.Denied, name) })
	slices.Sort(names)
	return strings.Join(names, ",")
}

// shows reports whether a catalog shows a list of a server at a time: all of it, or what is not denied.
func (c *court) showsList(server string, list *history.Event, s shown, t time.Duration) bool {
	if list.Hash == s.hash || len(list.Names) == 0 && s.count == 0 {
		return true
	}
	return c.plan.Denies(server) && slices.ContainsFunc(c.describedIn(server, t, t), func(d described) bool { return d.offers(list.Names) == s.tools })
}

// adjustments judges each adjust of a server that is connected. Nothing of what it says needs another connection.
//
//   - The connection stays, and the server connected in its epoch: I17.
//   - The catalog shows what the new description lets through as soon as the command is answered: I14.
func (c *court) adjustments(server string, judge func(a asked, was, is described, u up)) {
	all := c.descriptions(server)
	if len(all) == 1 {
		return
	}
	commands, ups := c.commands(server), connected(c.stays(server))
	for i := 1; i < len(all); i++ {
		k := slices.IndexFunc(commands, func(a asked) bool { return a.at == all[i].at })
		a := commands[k]
		on := slices.IndexFunc(ups, func(u up) bool { return u.from < a.begin-c.moment && u.to >= a.begin })
		if on < 0 || all[i].Disabled || all[i].from >= c.closing() || c.overtaken(commands, a, all[i].from) {
			continue
		}
		judge(a, all[i-1], all[i], ups[on])
	}
}

// keepsConnection is I17 for what is adjusted around a connection.
func (c *court) keepsConnection(server string) {
	c.adjustments(server, func(a asked, _, is described, u up) {
		if c.under(server, a.begin-c.moment, is.from) {
			return
		}
		conn := c.openAt(server, a.begin-c.moment)
		if conn == nil || conn.Down >= 0 && c.x.Event(conn.Down).T <= is.from {
			return
		}
		c.looked++
		if u.to < is.from && u.next >= 0 && c.x.Event(u.next).Step != messages.Idle { // a lazy one may be let go
			c.violated(server, u.next, []int{a.at}, "The owner adjusted the server at %s, which needs no other connection, and it was %s at %s instead "+
				"of connected in epoch %d.", clock(a.begin), describe(c.x.Event(u.next)), clock(u.to), u.epoch)
			return
		}
		for _, other := range c.x.Conns(server) {
			if t, ok := c.x.Time(other.Open); ok && t >= a.begin && t <= is.from {
				c.violated(server, other.Open, []int{a.at}, "The owner adjusted the server at %s, which needs no other connection, and it was dialled at "+
					"%s.", clock(a.begin), clock(t))
				return
			}
		}
	})
}

// offersAnew is I14 for another filter: what is denied goes, and what is denied no more comes, with the command.
func (c *court) offersAnew(server string, l ledger, all []shown) {
	if !c.plan.Denies(server) {
		return
	}
	c.adjustments(server, func(a asked, was, is described, u up) {
		t := is.from
		if u.to <= t+c.moment || is.to <= t {
			return
		}
		n, _ := slices.BinarySearchFunc(all, t+1, func(s shown, t time.Duration) int { return int(s.from - t) })
		if n == 0 || all[n-1].state == "lost" || all[n-1].state == "cached" || all[n-1].from >= a.begin-c.moment && slices.Equal(was.Denied, is.Denied) {
			return
		}
		c.looked++
		now := all[n-1]
		if slices.ContainsFunc(l.revs, func(i int) bool { return c.x.Event(i).T <= t && is.offers(c.x.Event(i).Names) == now.tools }) {
			return
		}
		c.violatedAt(t, server, now.at, []int{a.at}, "The owner denied the tools %q of the server at %s, and the catalog showed at %s those that are "+
			"not offered then, or not all that are: %s.", strings.Join(is.Denied, ", "), clock(a.begin), clock(t), now.tools)
	})
}

// deniedRuns is I14 for calls: what is denied reaches no server.
func (c *court) deniedRuns(server string) {
	if !c.plan.Denies(server) {
		return
	}
	for _, call := range c.x.Calls() {
		if call.Server != server || call.Begin < 0 || len(call.Received) == 0 {
			continue
		}
		begin := c.x.Event(call.Begin)
		c.looked++
		if !slices.ContainsFunc(c.describedIn(server, begin.T, c.x.Event(call.Received[0]).T), func(d described) bool { return !slices.Contains(d.Denied, begin.Tool) }) {
			c.violated(server, call.Received[0], []int{call.Begin}, "Call %s of tool %s began at %s, when the owner had denied the tool, and its server "+
				"received it at %s.", call.ID, begin.Tool, clock(begin.T), clock(c.x.Event(call.Received[0]).T))
		}
	}
}
