package invariant

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// What must have happened for a green run to mean something. A check of it holds or says nothing: a run in which nothing
// went wrong has proved nothing, and violated nothing.

// happened makes the check of one occasion.
func happened(id, title, nothing string, count func(*court) int) Check {
	return check("sometimes "+id, title, "Sometimes: "+title+".", nothing, func(c *court) { c.looked = count(c) })
}

// occasions are the words of Scenario.Sometimes.
var occasions = []Check{
	happened("park", "a server was parked", "No server failed often enough in a row to be parked.", func(c *court) int {
		return c.phases(func(s *stay) bool { return s.Retry == messages.RetryParked })
	}),
	happened("probe-success", "a probe connected a parked server", "No probe of a parked server succeeded.", func(c *court) int {
		count := 0
		for _, server := range c.x.Servers() {
			parked := false
			for _, s := range c.stays(server) {
				switch {
				case s.Retry == messages.RetryParked:
					parked = true
				case s.Phase == messages.Connected && parked:
					count++
					parked = false
				case s.Phase != messages.Pending && s.Phase != messages.Failed, s.Step == messages.Queued:
					parked = false // somebody asked
				}
			}
		}
		return count
	}),
	happened("disabled-while-connecting", "a server was disabled while it was being connected",
		"No server was disabled, disconnected or removed while an attempt ran.", func(c *court) int {
			count := 0
			for _, server := range c.x.Servers() {
				attempts := c.attempts(server)
				for _, a := range c.commands(server) {
					if a.do != "disable" && a.do != "disconnect" && a.do != "remove" {
						continue
					}
					if slices.ContainsFunc(attempts, func(t *attempt) bool { return c.runs(t, a.begin) }) {
						count++
					}
				}
			}
			return count
		}),
	happened("retry-after", "a server said when to come back", "No server asked to be left alone for a time.", func(c *court) int {
		return c.events(func(e *history.Event) bool { return e.Side == history.World && e.RetryAfter > 0 })
	}),
	happened("withdrawn", "lost tools were withdrawn", "The tools of no lost connection left the catalog for want of its return.",
		func(c *court) int {
			count := 0
			for _, all := range c.shows() {
				for i := 1; i < len(all); i++ {
					if all[i-1].state == "lost" && all[i].state == "" {
						count++
					}
				}
			}
			return count
		}),
	happened("replayed", "a call was sent again", "No call was sent a second time.", func(c *court) int {
		count := 0
		for _, call := range c.x.Calls() {
			if len(call.Received) > 1 {
				count++
			}
		}
		return count
	}),
	happened("stable-reset", "a stable connection reset the count of failures",
		"No server that had failed before was connected for the stable period.", func(c *court) int {
			count := 0
			for _, server := range c.x.Servers() {
				failed := false
				stays := c.stays(server)
				for _, e := range c.endings(server) {
					if e.stable && failed {
						count++
					}
					failed = failed && !e.stable || e.low > 0
				}
				for _, u := range connected(stays) {
					if failed && u.next < 0 && u.to-u.from >= c.plan.Policy.Stable {
						count++
					}
				}
			}
			return count
		}),
}

// runs reports whether an attempt was under way at a time: dialled, and neither listed nor over.
func (c *court) runs(a *attempt, t time.Duration) bool {
	if c.x.Event(a.open).T > t {
		return false
	}
	for _, i := range []int{a.listed, a.end} {
		if end, ok := c.x.Time(i); ok && end <= t {
			return false
		}
	}
	return true
}

func (c *court) phases(is func(*stay) bool) (count int) {
	for _, server := range c.x.Servers() {
		for _, s := range c.stays(server) {
			if is(&s) {
				count++
			}
		}
	}
	return count
}

func (c *court) events(is func(*history.Event) bool) (count int) {
	for _, i := range c.x.Order() {
		if is(c.x.Event(i)) {
			count++
		}
	}
	return count
}

// fired is a check for each fault of the plan, by its name: that it had an effect at least once.
func fired(h *history.History) []Check {
	planned := map[string]int{}
	for _, f := range h.Plan.Faults {
		planned[f.Fault]++
	}
	names := make([]string, 0, len(planned))
	for name := range planned {
		names = append(names, name)
	}
	slices.Sort(names)
	var out []Check
	for _, name := range names {
		out = append(out, happened("fault "+name, fmt.Sprintf("the fault %s had an effect", name),
			fmt.Sprintf("None of the %d planned faults %q had an effect.", planned[name], name), func(c *court) int {
				ids := map[int]bool{}
				c.events(func(e *history.Event) bool {
					if e.Kind == history.Fired && e.Name == name {
						ids[e.Fault] = true
					}
					return false
				})
				return len(ids)
			}))
	}
	return out
}
