package config

import (
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Changes is how one set of servers becomes another by the least that has to be done. Each name of either set stands in
// exactly one list. The lists are sorted, and nil if they are empty.
type Changes struct {
	// Added and Removed are in one of the sets only.
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Replaced start or are dialled differently than before, or may begin where they were held back, or the reverse.
	Replaced []string `json:"replaced,omitempty"`
	// Adjusted changed in what no connection depends on: timeouts, the tools that are offered, disabled, lazy.
	Adjusted []string `json:"adjusted,omitempty"`
	// Moved are as they were, and come from another file or scope.
	Moved []string `json:"moved,omitempty"`
	// Kept are as they were.
	Kept []string `json:"kept,omitempty"`
}

// Compare finds the changes that lead from one set to the other.
func Compare(before, after map[string]messages.Spec) (c Changes) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		was, known := before[name]
		list := &c.Added
		if known {
			list = c.listFor(was, after[name])
		}
		*list = append(*list, name)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			c.Removed = append(c.Removed, name)
		}
	}
	return c
}

// listFor is the one for a server that is in both sets.
func (c *Changes) listFor(was, now messages.Spec) *[]string {
	switch {
	case was.Equal(now) && was.Scope == now.Scope && was.Source == now.Source:
		return &c.Kept
	case was.Equal(now):
		return &c.Moved
	case was.SameConnection(now):
		return &c.Adjusted
	}
	return &c.Replaced
}

// None reports whether nothing changed.
func (c Changes) None() bool {
	return len(c.Added)+len(c.Removed)+len(c.Replaced)+len(c.Adjusted)+len(c.Moved) == 0
}
