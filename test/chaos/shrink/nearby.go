package shrink

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// cutDistant removes at once what is far from the failure: what happens later, every other server, and the load. Most of the
// time of a run goes into these, so that the tries after this are short.
func (x *search) cutDistant() {
	if x.o.At > 0 {
		s := x.best.Clone()
		endAt(&s, x.o.At.Truncate(time.Second)+time.Second)
		x.tryScenario(s)
	}
	if x.o.Server != "" {
		s := x.best.Clone()
		for i := len(s.Servers) - 1; i >= 0; i-- {
			if g := s.Servers[i]; g.Name != x.o.Server && !isServerOf(x.o.Server, g.Name) {
				removeGroups(&s, i, i+1)
			}
		}
		if len(s.Servers) > 0 && len(s.Servers) < len(x.best.Servers) {
			x.tryScenario(s)
		}
	}
	if len(x.best.Load) > 0 {
		s := x.best.Clone()
		s.Load = nil
		x.tryScenario(s)
	}
}

// endAt ends the time of faults at d, and removes everything that would begin then or later.
func endAt(s *scenario.Scenario, d time.Duration) {
	s.Duration = messages.Duration(d)
	isLate := func(at messages.Duration) bool { return time.Duration(at) >= d }
	s.Faults = slices.DeleteFunc(s.Faults, func(f scenario.Fault) bool { return isLate(f.At) })
	s.Commands = slices.DeleteFunc(s.Commands, func(c scenario.Command) bool { return isLate(c.At) })
	s.Load = slices.DeleteFunc(s.Load, func(l scenario.Load) bool { return isLate(l.From) })
}
