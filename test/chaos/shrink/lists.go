package shrink

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// reduceLists leaves away servers with all that is about them, then what happens, then calls.
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
	x.removePairs()
}

// reduceList is ddmin on one list: it leaves away runs of entries, the longest first, and at last each by itself as long as one
// goes.
func (x *search) reduceList(length func(scenario.Scenario) int, without func(s *scenario.Scenario, from, to int)) {
	for size := length(x.best); size > 0; {
		removed := false
		for from := 0; from < length(x.best) && !x.isOver(); {
			to := min(from+size, length(x.best))
			s := x.best.Clone()
			without(&s, from, to)
			if x.tryScenario(s) {
				removed = true // the next ones have moved to from
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

// removePairs leaves away two commands at once: what undoes another one (enable after disable) cannot go alone.
func (x *search) removePairs() {
	if len(x.best.Commands) > 12 {
		return // their pairs would be too many tries
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

// removeGroups leaves away groups of servers, and their names wherever they stand.
func removeGroups(s *scenario.Scenario, from, to int) {
	removed := s.Servers[from:to:to]
	s.Servers = append(slices.Clone(s.Servers[:from]), s.Servers[to:]...)
	remaining := 0
	for _, g := range s.Servers {
		remaining += max(g.Count, 1)
	}
	// narrowed takes the words away that pick only what is gone. false: nothing is left of a selector that said something.
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
}

// isServerOf says whether a word is the id of a server of a group.
func isServerOf(word, group string) bool {
	n, ok := strings.CutPrefix(word, group+"-")
	_, err := strconv.Atoi(n)
	return ok && err == nil
}
