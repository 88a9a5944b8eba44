package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// instantGuard ends a run whose time does not go on: of those who ask each other for more in one instant it says who they are.
type instantGuard struct {
	limit, steps int // steps of the instant at hand
	// perAction counts what was done in the last steps before the limit, and of which server that was.
	perAction map[string]int
	perServer map[string]int
}

// maxStepsAtOnce is how many things may happen in one instant. In a thousand random days the busiest one has a hundred; every server
// of a stampede has some thirty.
func maxStepsAtOnce(servers int) int { return 20_000 + 500*servers }

// countedSteps is how many of the steps before the limit are counted.
const countedSteps = 1000

func (g *instantGuard) resetSteps() { g.steps = 0 }

// countAction takes down what was done, when it is time to look.
func (g *instantGuard) countAction(server string, what func() string) {
	if g.steps <= g.limit-countedSteps {
		return
	}
	if g.perAction == nil {
		g.perAction, g.perServer = map[string]int{}, map[string]int{}
	}
	g.perAction[what()]++
	if server != "" {
		g.perServer[server]++
	}
}

func (g *instantGuard) countStep(w *simulation) bool {
	g.steps++
	if g.steps <= g.limit {
		return true
	}
	w.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I9", Server: mostFrequent(g.perServer, 1)[0], Text: g.describeLoop()})
	w.stopped = true
	return false
}

// describeLoop is the sentence that names what goes on without an end.
func (g *instantGuard) describeLoop() string {
	text := fmt.Sprintf("more than %d things happened in one instant: something goes on without an end", g.limit)
	var parts []string
	for _, what := range mostFrequent(g.perAction, 5) {
		if what != "" {
			parts = append(parts, fmt.Sprintf("%s %d times", what, g.perAction[what]))
		}
	}
	if len(parts) == 0 {
		return text
	}
	return text + fmt.Sprintf(". Of the last %d: ", countedSteps) + strings.Join(parts, ", ")
}

// mostFrequent are the keys that were counted most, at most so many, and at least one: empty if there is none.
func mostFrequent(counts map[string]int, n int) []string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if len(keys) == 0 {
		return []string{""}
	}
	return keys[:min(n, len(keys))]
}
