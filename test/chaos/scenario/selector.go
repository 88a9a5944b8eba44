package scenario

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Rand returns the source of the random numbers that belong to a name in a run with this seed. Every part of a run that
// draws has a source of its own, so that one that draws more changes nothing for the others.
func Rand(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// validPattern reports whether a word can be matched; names are patterns without a star.
func validPattern(w string) bool {
	_, err := path.Match(w, "")
	return err == nil && w != ""
}

// choice is a resolved selector: servers that are named, servers that a pattern matches, and the number to pick of all
// these.
type choice struct {
	// named and matched hold indexes in the list of servers, ascending and disjoint.
	named, matched []int
	// count is 0 if all of them are taken.
	count int
}

// resolveChoice finds the servers of a selector; unmatched is the index of a word that picks none, or -1.
func (s Selector) resolveChoice(servers []Server) (c choice, unmatched int) {
	for i, w := range s {
		if n, ok := strings.CutPrefix(w, "any:"); ok {
			// Check has read the number before.
			c.count, _ = strconv.Atoi(n)
			continue
		}
		found := false
		for at, server := range servers {
			if server.Name == w || server.Group == w {
				c.named, found = append(c.named, at), true
			} else if ok, err := path.Match(w, server.Name); err == nil && ok {
				c.matched, found = append(c.matched, at), true
			}
		}
		if !found {
			return c, i
		}
	}
	// A selector without names, "any:3" alone or nothing at all, is about all servers.
	if len(c.named)+len(c.matched) == 0 {
		for at := range servers {
			c.matched = append(c.matched, at)
		}
	}
	c.named, c.matched = sortedSet(c.named), sortedSet(c.matched)
	c.matched = slices.DeleteFunc(c.matched, func(at int) bool { return slices.Contains(c.named, at) })
	return c, -1
}

// sortedSet sorts a list and removes doubled elements: a server may be named twice, or named and matched.
func sortedSet(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// candidates returns the indexes of the servers to which something can happen, ascending. refuse says why a server is
// unsuitable, nil if it is suitable. An unsuitable server that was named is an error; of those that a pattern or any
// picks, only the suitable ones are taken.
func (c choice) candidates(servers []Server, refuse func(Server) error) ([]int, error) {
	var can []int
	var cause error
	for _, at := range c.named {
		if err := refuse(servers[at]); err == nil {
			can = append(can, at)
		} else if cause = err; c.count == 0 {
			return nil, err
		}
	}
	for _, at := range c.matched {
		if err := refuse(servers[at]); err == nil {
			can = append(can, at)
		} else {
			cause = err
		}
	}
	slices.Sort(can)
	switch {
	case len(can) == 0:
		return nil, fmt.Errorf("it can happen to none of the servers that are picked: %w", cause)
	case c.count > len(can):
		return nil, fmt.Errorf("%d servers are to be picked, and there are %d that it can happen to", c.count, len(can))
	}
	return can, nil
}

// drawServers picks count of the candidates, ascending, by Floyd's algorithm, which draws only as many numbers as it
// picks.
func drawServers(can []int, count int, r *rand.Rand) []int {
	picked := map[int]bool{}
	for last := len(can) - count; last < len(can); last++ {
		at := r.IntN(last + 1)
		if picked[at] {
			at = last
		}
		picked[at] = true
	}
	out := make([]int, 0, count)
	for at := range picked {
		out = append(out, can[at])
	}
	slices.Sort(out)
	return out
}
