package shrink

import (
	"maps"
	"reflect"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// settingsOf counts the optional values of a scenario: nonzero fields of servers, load and the manager, parameters of faults,
// repetitions, and the settle time.
func settingsOf(s scenario.Scenario) int {
	n := len(givenFields(&s))
	for _, f := range s.Faults {
		n += len(f.With)
	}
	return n
}

// givenFields returns those of settableFields that are not zero.
func givenFields(s *scenario.Scenario) []reflect.Value {
	return slices.DeleteFunc(settableFields(s), reflect.Value.IsZero)
}

// settableFields returns the fields that may be zero, in a fixed order, so that an index means the same field in a clone.
// Names, selectors, and the times of events are left out; the times have passes of their own.
func settableFields(s *scenario.Scenario) []reflect.Value {
	var out []reflect.Value
	add := func(value any, except ...string) {
		v := reflect.ValueOf(value).Elem()
		for i := range v.NumField() {
			if !slices.Contains(except, v.Type().Field(i).Name) {
				out = append(out, v.Field(i))
			}
		}
	}
	add(&s.Manager)
	for i := range s.Servers {
		add(&s.Servers[i], "Name")
	}
	for i := range s.Faults {
		add(&s.Faults[i], "Fault", "With", "On", "At", "For")
	}
	for i := range s.Commands {
		add(&s.Commands[i], "Do", "On", "At")
	}
	for i := range s.Load {
		add(&s.Load[i], "On", "From", "For")
	}
	for i := range s.Agents {
		add(&s.Agents[i], "As", "From", "For")
	}
	return append(out, reflect.ValueOf(&s.Settle).Elem())
}

// dropSettings sets optional values to zero, many at once where that is possible, and halves the rates of load. Sometimes and
// Invariants stay, because they say what is asked about the scenario and not what happens in it.
func (x *search) dropSettings() {
	x.reduceList(func(s scenario.Scenario) int { return len(givenFields(&s)) }, func(s *scenario.Scenario, from, to int) {
		for _, field := range givenFields(s)[from:to] {
			field.SetZero()
		}
	})
	for i := 0; i < len(x.best.Faults) && !x.isOver(); i++ {
		for _, key := range slices.Sorted(maps.Keys(x.best.Faults[i].With)) {
			s := x.best.Clone()
			delete(s.Faults[i].With, key)
			if len(s.Faults[i].With) == 0 {
				s.Faults[i].With = nil
			}
			x.tryScenario(s)
		}
	}
	for i := 0; i < len(x.best.Load) && !x.isOver(); i++ {
		for x.best.Load[i].Rate > 0.01 {
			s := x.best.Clone()
			s.Load[i].Rate /= 2
			if !x.tryScenario(s) {
				break
			}
		}
	}
	for i := 0; i < len(x.best.Agents) && !x.isOver(); i++ {
		for x.best.Agents[i].Rate > 0.01 {
			s := x.best.Clone()
			s.Agents[i].Rate /= 2
			if !x.tryScenario(s) {
				break
			}
		}
	}
}

// durations returns the times of a scenario that may be rounded, in a fixed order.
func durations(s *scenario.Scenario) []*messages.Duration {
	out := []*messages.Duration{&s.Duration, &s.Settle}
	for i := range s.Faults {
		f := &s.Faults[i]
		out = append(out, &f.At, &f.For, &f.Every, &f.Spread)
	}
	for i := range s.Commands {
		c := &s.Commands[i]
		out = append(out, &c.At, &c.Every, &c.Spread)
	}
	for i := range s.Load {
		out = append(out, &s.Load[i].From, &s.Load[i].For)
	}
	for i := range s.Agents {
		out = append(out, &s.Agents[i].From, &s.Agents[i].For)
		for k := range s.Agents[i].Within {
			out = append(out, &s.Agents[i].Within[k].At)
		}
	}
	return out
}
