package shrink

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// reduceLists removes servers with everything that concerns them, then faults and commands, then load.
func (x *search) reduceLists() {
	x.reduceList(func(s scenario.Scenario) int { return len(s.Servers) }, removeGroups)
	x.reduceList(func(s scenario.Scenario) int { return len(s.Faults) }, func(s *scenario.Scenario, from, to int) {
		s.Faults = slices.Delete(s.Faults, from, to)
	})
	x.reduceList(func(s scenario.Scenario) int { return len(s.Commands) }, func(s *scenario.Scenario, from, to int) {
		s.Commands = slices.Delete(s.Commands, from, to)
	})
	x.reduceList(func(s scenario.Scenario) int { return len(s.Load) }, func(s *scenario.Scenario, from, to int) {
		s.Load = slices.Delete(s.Load, from, to)
	})
	x.reduceList(func(s scenario.Scenario) int { return len(s.Agents) }, func(s *scenario.Scenario, from, to int) {
		s.Agents = slices.Delete(s.Agents, from, to)
	})
	x.removePairs()
}

// reduceList is the algorithm ddmin on one list: it removes runs of entries, the longest first, and single entries as long as
// one can go.
func (x *search) reduceList(length func(scenario.Scenario) int, without func(s *scenario.Scenario, from, to int)) {
	for size := length(x.best); size > 0; {
		removed := false
		for from := 0; from < length(x.best) && !x.isOver(); {
			to := min(from+size, length(x.best))
			s := x.best.Clone()
			without(&s, from, to)
			if x.tryScenario(s) {
				// The entries behind it have moved to from.
				removed = true
				continue
			}
			from = to
		}
		switch {
		case x.isOver():
			return
		case size > 1:
			size = (size + 1) / 2
		case !removed:
			return
		}
	}
}

// removePairs removes two commands at once, because a command that undoes another one (enable after disable) cannot go alone.
// Above 12 commands there would be too many pairs.
func (x *search) removePairs() {
	if len(x.best.Commands) > 12 {
		return
	}
	for i := 0; i < len(x.best.Commands) && !x.isOver(); i++ {
		for j := i + 1; j < len(x.best.Commands) && !x.isOver(); j++ {
			s := x.best.Clone()
			s.Commands = slices.Delete(slices.Delete(s.Commands, j, j+1), i, i+1)
			if x.tryScenario(s) {
				i--
				break
			}
		}
	}
}

// removeGroups removes groups of servers, and their names from all selectors. An entry whose selector is left empty goes too,
// because an empty selector would mean all servers.
func removeGroups(s *scenario.Scenario, from, to int) {
	removed := s.Servers[from:to:to]
	s.Servers = append(slices.Clone(s.Servers[:from]), s.Servers[to:]...)
	remaining := 0
	for _, g := range s.Servers {
		remaining += max(g.Count, 1)
	}
	// narrowSelector removes the words that select only removed servers. It returns false if a selector that had words has none
	// left.
	narrowSelector := func(on *scenario.Selector) bool {
		if len(*on) == 0 {
			return true
		}
		*on = slices.DeleteFunc(slices.Clone(*on), func(w string) bool {
			return slices.ContainsFunc(removed, func(g scenario.Group) bool { return w == g.Name || g.Count > 1 && isServerOf(w, g.Name) })
		})
		for i, w := range *on {
			if n, err := strconv.Atoi(strings.TrimPrefix(w, "any:")); err == nil && strings.HasPrefix(w, "any:") && n > remaining {
				(*on)[i] = "any:" + strconv.Itoa(remaining)
			}
		}
		return len(*on) > 0
	}
	faults := s.Faults[:0]
	for _, f := range s.Faults {
		if narrowSelector(&f.On) {
			faults = append(faults, f)
		}
	}
	s.Faults = faults
	commands := s.Commands[:0]
	for _, c := range s.Commands {
		if narrowSelector(&c.On) {
			commands = append(commands, c)
		}
	}
	s.Commands = commands
	load := s.Load[:0]
	for _, l := range s.Load {
		if narrowSelector(&l.On) {
			load = append(load, l)
		}
	}
	s.Load = load
	s.Agents = slices.DeleteFunc(s.Agents, func(a scenario.Agents) bool {
		return slices.ContainsFunc(removed, func(g scenario.Group) bool { return a.View != "" && (a.View == g.Name || isServerOf(a.View, g.Name)) })
	})
}

// isServerOf reports whether a word is the id of a server of a group: the group's name and a number.
func isServerOf(word, group string) bool {
	n, ok := strings.CutPrefix(word, group+"-")
	_, err := strconv.Atoi(n)
	return ok && err == nil
}
