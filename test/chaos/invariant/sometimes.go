package invariant

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// The checks of this file demand that an event happened at least once, so that a green run means something. Such a check holds
// or says nothing: a run without the event has proved nothing, and violated nothing.

// newOccasion makes the check of one occasion from the function that counts how often it happened.
func newOccasion(id, title, nothing string, count func(*checker) int) Check {
	return newCheck("sometimes "+id, title, "Sometimes: "+title+".", nothing, func(c *checker) { c.judged = count(c) })
}

// occasionChecks are the checks that a scenario may name in Scenario.Sometimes.
var occasionChecks = []Check{
	newOccasion("park", "a server was parked", "No server failed often enough in a row to be parked.", func(c *checker) int {
		return c.countPhases(func(s *phaseSpan) bool { return s.Retry == messages.RetryParked })
	}),
	newOccasion("probe-success", "a probe connected a parked server", "No probe of a parked server succeeded.", func(c *checker) int {
		count := 0
		for _, server := range c.x.Servers() {
			parked := false
			for _, s := range c.phaseSpans(server) {
				switch {
				case s.Retry == messages.RetryParked:
					parked = true
				case s.Phase == messages.Connected && parked:
					count++
					parked = false
				case s.Phase != messages.Pending && s.Phase != messages.Failed, s.Step == messages.Queued:
					parked = false // a command started the attempt, not a probe
				}
			}
		}
		return count
	}),
	newOccasion("disabled-while-connecting", "a server was disabled while it was being connected",
		"No server was disabled, disconnected or removed while an attempt ran.", func(c *checker) int {
			count := 0
			for _, server := range c.x.Servers() {
				attempts := c.attemptsOf(server)
				for _, a := range c.ownerCommands(server) {
					if a.action != "disable" && a.action != "disconnect" && a.action != "remove" {
						continue
					}
					// The command must fall between the dial and the first list.
					if slices.ContainsFunc(attempts, func(t *attempt) bool { return c.isUnderWay(t, a.begin) }) {
						count++
					}
				}
			}
			return count
		}),
	newOccasion("retry-after", "a server said when to come back", "No server asked to be left alone for a time.", func(c *checker) int {
		return c.countEvents(func(e *history.Event) bool { return e.Side == history.World && e.RetryAfter > 0 })
	}),
	newOccasion("withdrawn", "lost tools were withdrawn", "The tools of no lost connection left the catalog for want of its return.",
		func(c *checker) int {
			count := 0
			for _, all := range c.catalogSpans() {
				for i := 1; i < len(all); i++ {
					if all[i-1].state == "lost" && all[i].state == "" {
						count++
					}
				}
			}
			return count
		}),
	newOccasion("replayed", "a call was sent again", "No call was sent a second time.", func(c *checker) int {
		count := 0
		for _, call := range c.x.Calls() {
			if len(call.Received) > 1 {
				count++
			}
		}
		return count
	}),
	newOccasion("stable-reset", "a stable connection reset the count of failures",
		"No server that had failed before was connected for the stable period.", func(c *checker) int {
			count := 0
			for _, server := range c.x.Servers() {
				failed := false
				stays := c.phaseSpans(server)
				for _, e := range c.attemptEnds(server) {
					// Only a reset of a count above zero proves the rule.
					if e.stable && failed {
						count++
					}
					failed = failed && !e.stable || e.minFailures > 0
				}
				// A connection that stands at the end has no attemptEnd, and counts as well.
				for _, u := range connectedSpans(stays) {
					if failed && u.endEvent < 0 && u.to-u.from >= c.plan.Policy.Stable {
						count++
					}
				}
			}
			return count
		}),
}

// isUnderWay reports whether an attempt was under way at a time: dialled, and neither listed nor over.
func (c *checker) isUnderWay(a *attempt, t time.Duration) bool {
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

// countPhases counts the published phases of all servers that satisfy match.
func (c *checker) countPhases(match func(*phaseSpan) bool) (count int) {
	for _, server := range c.x.Servers() {
		for _, s := range c.phaseSpans(server) {
			if match(&s) {
				count++
			}
		}
	}
	return count
}

// countEvents counts the events that satisfy match.
func (c *checker) countEvents(match func(*history.Event) bool) (count int) {
	for _, i := range c.x.Order() {
		if match(c.x.Event(i)) {
			count++
		}
	}
	return count
}

// faultChecks returns one check for each fault name of the plan: that it had an effect at least once. They are sorted by name
// so that two reports of one run are equal.
func faultChecks(h *history.History) []Check {
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
		out = append(out, newOccasion("fault "+name, fmt.Sprintf("the fault %s had an effect", name),
			fmt.Sprintf("None of the %d planned faults %q had an effect.", planned[name], name), func(c *checker) int {
				// A fault fires many times, and counts once by its id.
				ids := map[int]bool{}
				c.countEvents(func(e *history.Event) bool {
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
