package shrink

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// cutDistant removes at once what is far from the failure: what happens later, every other server, what was over before, and in turn
// the load, the agents, the faults, the commands and the manager's settings. Most of the time of a run goes into these, so that the
// tries after this are short.
func (x *search) cutDistant() {
	if x.o.At > 0 {
		// A failure that is seen at once needs no more than a second; one of what agents do may need what they do next. The longer time is
		// tried too, because all other tries of a long day take long.
		for _, after := range []time.Duration{time.Second, 15 * time.Second, time.Minute} {
			if x.tryChange(func(s *scenario.Scenario) { endAt(s, x.o.At.Truncate(time.Second)+after) }) {
				break
			}
		}
	}
	if x.o.Server != "" {
		x.tryChange(func(s *scenario.Scenario) {
			for i := len(s.Servers) - 1; i >= 0; i-- {
				if g := s.Servers[i]; g.Name != x.o.Server && !isServerOf(x.o.Server, g.Name) {
					removeGroups(s, i, i+1)
				}
			}
		})
	}
	for _, before := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute} {
		if x.o.At > before && x.tryChange(func(s *scenario.Scenario) { beginAt(s, x.o.At-before) }) {
			break
		}
	}
	x.tryChange(func(s *scenario.Scenario) { s.Load = nil })
	x.tryChange(func(s *scenario.Scenario) { s.Agents = nil })
	x.tryChange(func(s *scenario.Scenario) { s.Faults = nil })
	x.tryChange(func(s *scenario.Scenario) { s.Commands = nil })
	x.tryChange(func(s *scenario.Scenario) { s.Manager = scenario.Manager{} })
	x.moveEarlier()
}

// tryChange keeps a change of the best scenario if what it makes is smaller and fails.
func (x *search) tryChange(change func(*scenario.Scenario)) bool {
	s := x.best.Clone()
	change(&s)
	return x.tryScenario(s)
}

// endAt ends the time of faults at d, and removes everything that would begin then or later.
func endAt(s *scenario.Scenario, d time.Duration) {
	s.Duration = messages.Duration(d)
	isLate := func(at messages.Duration) bool { return time.Duration(at) >= d }
	s.Faults = slices.DeleteFunc(s.Faults, func(f scenario.Fault) bool { return isLate(f.At) })
	s.Commands = slices.DeleteFunc(s.Commands, func(c scenario.Command) bool { return isLate(c.At) })
	s.Load = slices.DeleteFunc(s.Load, func(l scenario.Load) bool { return isLate(l.From) })
	s.Agents = slices.DeleteFunc(s.Agents, func(a scenario.Agents) bool { return isLate(a.From) })
}

// beginAt removes everything that happens once, or ends, before d.
func beginAt(s *scenario.Scenario, d time.Duration) {
	isOver := func(at, lasts, every messages.Duration) bool { return every == 0 && time.Duration(at+lasts) < d }
	s.Faults = slices.DeleteFunc(s.Faults, func(f scenario.Fault) bool { return isOver(f.At, f.For, f.Every) })
	s.Commands = slices.DeleteFunc(s.Commands, func(c scenario.Command) bool { return isOver(c.At, 0, c.Every) })
	s.Load = slices.DeleteFunc(s.Load, func(l scenario.Load) bool { return l.For > 0 && isOver(l.From, l.For, 0) })
	s.Agents = slices.DeleteFunc(s.Agents, func(a scenario.Agents) bool { return a.For > 0 && isOver(a.From, a.For, 0) })
}
