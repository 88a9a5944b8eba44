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

// Rand is the source of the random numbers that belong to a name, in a run with this seed. Every part of a run that draws
// has a source of its own, so that one that draws more changes nothing for the others.
func Rand(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

func validPattern(w string) bool {
	_, err := path.Match(w, "")
	return err == nil && w != ""
}

// choice is what a selector means: servers that are named, servers that a pattern matches, and how many of all these.
type choice struct {
	named, matched []int // places in the list of servers, ascending
	count          int   // 0: all
}

// resolveChoice finds the servers of a selector; wrong is the word that picks none, with its place.
func (s Selector) resolveChoice(servers []Server) (c choice, unmatched int) {
	for i, w := range s {
		if n, ok := strings.CutPrefix(w, "any:"); ok {
			c.count, _ = strconv.Atoi(n) // Check has read it
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
	if len(c.named)+len(c.matched) == 0 {
		for at := range servers {
			c.matched = append(c.matched, at)
		}
	}
	c.named, c.matched = sortedSet(c.named), sortedSet(c.matched)
	c.matched = slices.DeleteFunc(c.matched, func(at int) bool { return slices.Contains(c.named, at) })
	return c, -1
}

func sortedSet(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// candidates are those of the choice that something can happen to, ascending. refuse says why a server is none, nil if it is
// one. A server that was named and cannot is an error; of those that a pattern or any picks, only those that can are taken.
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

// drawServers picks some of the candidates, ascending (Floyd's way, which draws only as many numbers as it picks).
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
