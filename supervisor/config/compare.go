package config

import (
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Changes sorts the servers of two sets by the least that the supervisor has to do to get from one set to the other. Each name
// of either set stands in exactly one list. The lists are sorted, and nil if they are empty.
type Changes struct {
	// Added and Removed are in one of the sets only.
	Added   []string `json:"added,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Replaced servers start or are dialled differently than before, or may start although they were held back, or the reverse.
	// Their connections have to be opened anew.
	Replaced []string `json:"replaced,omitempty"`
	// Adjusted servers changed in what no connection depends on: timeouts, the tools that are offered, disabled, lazy. Their
	// connections stay.
	Adjusted []string `json:"adjusted,omitempty"`
	// Moved servers are as they were, and come from another file or scope.
	Moved []string `json:"moved,omitempty"`
	// Kept servers are as they were, from the same file and scope.
	Kept []string `json:"kept,omitempty"`
}

// Compare sorts the servers of both sets into [Changes]. It changes neither set.
func Compare(before, after map[string]messages.Spec) (c Changes) {
	// Sorted names give sorted lists.
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

// listFor returns the list for a server that is in both sets, trying the cheapest consequence first.
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

// None reports whether the supervisor has nothing to do: all servers are in Kept.
func (c Changes) None() bool {
	return len(c.Added)+len(c.Removed)+len(c.Replaced)+len(c.Adjusted)+len(c.Moved) == 0
}
