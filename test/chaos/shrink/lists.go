package shrink

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// lists leaves away servers with all that is about them, then what happens, then calls.
func (x *search) lists() {
	x.reduce(func(s scenario.Scenario) int { return len(s.Servers) }, withoutGroups)
	x.reduce(func(s scenario.Scenario) int { return len(s.Faults) }, func(s *scenario.Scenario, from, to int) {
		s.Faults = slices.Delete(s.Faults, from, to)
	})
	x.reduce(func(s scenario.Scenario) int { return len(s.Commands) }, func(s *scenario.Scenario, from, to int) {
		s.Commands = slices.Delete(s.Commands, from, to)
	})
	x.reduce(func(s scenario.Scenario) int { return len(s.Load) }, func(s *scenario.Scenario, from, to int) {
		s.Load = slices.Delete(s.Load, from, to)
	})
	x.together()
}

// reduce is ddmin on one list: it leaves away runs of entries, the longest first, and at last each by itself as long as one
// goes.
func (x *search) reduce(length func(scenario.Scenario) int, without func(s *scenario.Scenario, from, to int)) {
	for size := length(x.best); size > 0; {
		gone := false
		for from := 0; from < length(x.best) && !x.over(); {
			to := min(from+size, length(x.best))
			s := x.best.Clone()
			without(&s, from, to)
			if x.try(s) {
				gone = true // the next ones have moved to from
				continue
			}
			from = to
		}
		switch {
		case x.over():
			return
		case size > 1:
			size = (size + 1) / 2
		case !gone:
			return
		}
	}
}

// together leaves away two commands at once: what undoes another one (enable after disable) cannot go alone.
func (x *search) together() {
	if len(x.best.Commands) > 12 {
		return // their pairs would be too many tries
	}
	for i := 0; i < len(x.best.Commands) && !x.over(); i++ {
		for j := i + 1; j < len(x.best.Commands) && !x.over(); j++ {
			s := x.best.Clone()
			s.Commands = slices.Delete(slices.Delete(s.Commands, j, j+1), i, i+1)
			if x.try(s) {
				i--
				break
			}
		}
	}
}

// withoutGroups leaves away groups of servers, and their names wherever they stand.
func withoutGroups(s *scenario.Scenario, from, to int) {
	gone := s.Servers[from:to:to]
	s.Servers = append(slices.Clone(s.Servers[:from]), s.Servers[to:]...)
	left := 0
	for _, g := range s.Servers {
		left += max(g.Count, 1)
	}
	// narrowed takes the words away that pick only what is gone. false: nothing is left of a selector that said something.
	narrowed := func(on *scenario.Selector) bool {
		if len(*on) == 0 {
			return true
		}
		*on = slices.DeleteFunc(slices.Clone(*on), func(w string) bool {
			return slices.ContainsFunc(gone, func(g scenario.Group) bool { return w == g.Name || g.Count > 1 && isOf(w, g.Name) })
		})
		for i, w := range *on {
			if n, err := strconv.Atoi(strings.TrimPrefix(w, "any:")); err == nil && strings.HasPrefix(w, "any:") && n > left {
				(*on)[i] = "any:" + strconv.Itoa(left)
			}
		}
		return len(*on) > 0
	}
	faults := s.Faults[:0]
	for _, f := range s.Faults {
		if narrowed(&f.On) {
			faults = append(faults, f)
		}
	}
	s.Faults = faults
	commands := s.Commands[:0]
	for _, c := range s.Commands {
		if narrowed(&c.On) {
			commands = append(commands, c)
		}
	}
	s.Commands = commands
	load := s.Load[:0]
	for _, l := range s.Load {
		if narrowed(&l.On) {
			load = append(load, l)
		}
	}
	s.Load = load
}

// isOf says whether a word is the id of a server of a group.
func isOf(word, group string) bool {
	n, ok := strings.CutPrefix(word, group+"-")
	_, err := strconv.Atoi(n)
	return ok && err == nil
}
