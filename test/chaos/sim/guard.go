package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// guard ends a run whose time does not go on: of those who ask each other for more in one instant it says who they are.
type guard struct {
	limit, steps int // steps of the instant at hand
	// done counts what was done in the last steps before the limit, and of which server that was.
	done map[string]int
	of   map[string]int
}

// mostAtOnce is how many things may happen in one instant. In a thousand random days the busiest one has a hundred; every server
// of a stampede has some thirty.
func mostAtOnce(servers int) int { return 20_000 + 500*servers }

// guarded is how many of the steps before the limit are counted.
const guarded = 1000

func (g *guard) moved() { g.steps = 0 }

// note takes down what was done, when it is time to look.
func (g *guard) note(server string, what func() string) {
	if g.steps <= g.limit-guarded {
		return
	}
	if g.done == nil {
		g.done, g.of = map[string]int{}, map[string]int{}
	}
	g.done[what()]++
	if server != "" {
		g.of[server]++
	}
}

func (g *guard) step(w *world) bool {
	g.steps++
	if g.steps <= g.limit {
		return true
	}
	w.record(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I9", Server: most(g.of, 1)[0], Text: g.told()})
	w.over = true
	return false
}

// told is the sentence that names what goes on without an end.
func (g *guard) told() string {
	text := fmt.Sprintf("more than %d things happened in one instant: something goes on without an end", g.limit)
	var parts []string
	for _, what := range most(g.done, 5) {
		if what != "" {
			parts = append(parts, fmt.Sprintf("%s %d times", what, g.done[what]))
		}
	}
	if len(parts) == 0 {
		return text
	}
	return text + fmt.Sprintf(". Of the last %d: ", guarded) + strings.Join(parts, ", ")
}

// most are the keys that were counted most, at most so many, and at least one: empty if there is none.
func most(counts map[string]int, n int) []string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if len(keys) == 0 {
		return []string{""}
	}
	return keys[:min(n, len(keys))]
}
