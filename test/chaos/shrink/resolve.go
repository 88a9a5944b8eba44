package shrink

import (
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

// shrinkAsWritten shrinks a scenario in the form in which it was written: a group of a thousand servers becomes one of ten in a
// few tries, and a day an hour.
func (x *search) shrinkAsWritten() {
	x.shortenDay()
	x.reduceLists()
	for i := 0; i < len(x.best.Servers) && !x.isOver(); i++ {
		// The counts double from 1, so that the smallest sufficient power of two is found in a few tries.
		for n := 1; n < x.best.Servers[i].Count; n *= 2 {
			s := x.best.Clone()
			if s.Servers[i].Count = n; n == 1 {
				renameFirst(&s, s.Servers[i].Name)
			}
			if x.tryScenario(s) {
				break
			}
		}
	}
	for i := 0; i < len(x.best.Faults) && !x.isOver(); i++ {
		if x.best.Faults[i].Every == 0 {
			continue
		}
		for n := 1; n <= 64; n *= 2 {
			s := x.best.Clone()
			s.Faults[i].Times = n
			if x.tryScenario(s) {
				break
			}
		}
	}
}

// renameFirst renames the first server of a group in all selectors: a group of one server has no number in its id.
func renameFirst(s *scenario.Scenario, group string) {
	change := func(on scenario.Selector) {
		for i, w := range on {
			if isServerOf(w, group) {
				on[i] = group
			}
		}
	}
	for i := range s.Faults {
		change(s.Faults[i].On)
	}
	for i := range s.Commands {
		change(s.Commands[i].On)
	}
	for i := range s.Load {
		change(s.Load[i].On)
	}
}

// resolvePlan replaces the scenario by its plan: each server becomes a group of its own, each occurrence an entry with its time
// and server. From then on nothing depends on what selectors pick and spreads draw. The resolved form stays only if something
// can be removed from it.
func (x *search) resolvePlan() {
	plan, err := x.best.Plan(0, x.o.Tier)
	if err != nil || x.isOver() {
		return
	}
	s := resolvedScenario(x.best, plan)
	replanned, err := s.Plan(0, x.o.Tier)
	if err != nil || !x.stillFails(s) {
		return
	}
	written, size, kept := x.best, x.size, x.kept
	x.best, x.size = s, sizeOf(s, replanned)
	x.reduceLists()
	if !x.size.Less(size) {
		x.best, x.size, x.kept = written, size, kept
	}
}

// resolvedScenario returns a scenario whose plan is plan, without selectors or spreads to resolve.
func resolvedScenario(s scenario.Scenario, plan scenario.Plan) scenario.Scenario {
	s = s.Clone()
	groups := map[string]scenario.Group{}
	for _, g := range s.Servers {
		groups[g.Name] = g
	}
	s.Servers = nil
	for _, server := range plan.Servers {
		g := groups[server.Group]
		g.Name, g.Count = server.Name, 0
		s.Servers = append(s.Servers, g)
	}
	s.Duration = messages.Duration(plan.Heal)
	s.Faults = nil
	for _, f := range plan.Faults {
		s.Faults = append(s.Faults, scenario.Fault{
			Fault: f.Fault, With: setParameters(f), On: selectorOf(f.Server), At: messages.Duration(f.Begin), For: messages.Duration(f.End - f.Begin),
		})
	}
	s.Commands = nil
	for _, c := range plan.Commands {
		s.Commands = append(s.Commands, scenario.Command{Do: c.Do, On: selectorOf(c.Server), At: messages.Duration(c.At)})
	}
	s.Load = nil
	for _, l := range plan.Load {
		load := scenario.Load{
			On: selectorOf(l.Server), Tool: l.Tool, Rate: l.Rate, Timeout: messages.Duration(l.Timeout), Size: l.Size, Read: l.Read, Callers: l.Callers,
			Task: l.Task, Cancel: l.Cancel, From: messages.Duration(l.Begin), Together: l.Together,
		}
		if l.End < plan.End {
			load.For = messages.Duration(l.End - l.Begin)
		}
		s.Load = append(s.Load, load)
	}
	return s.Clone()
}

// setParameters returns the parameters of an occurrence that differ from their defaults.
func setParameters(f scenario.PlannedFault) map[string]string {
	// The plan has only known faults.
	kind, _ := faults.Lookup(f.Fault)
	with := maps.Clone(f.With)
	for _, p := range kind.ParamsAt(faults.Sim) {
		if with[p.Name] == p.Default {
			delete(with, p.Name)
		}
	}
	if len(with) == 0 {
		return nil
	}
	return with
}

// selectorOf selects one server, or with an empty name all.
func selectorOf(server string) scenario.Selector {
	if server == "" {
		return nil
	}
	return slices.Clone(scenario.Selector{server})
}
