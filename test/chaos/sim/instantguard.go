package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
)

// instantGuard ends a run whose virtual time does not advance, because actors or servers ask each other for more in one instant
// without end. It names the most frequent actions.
type instantGuard struct {
	// steps counts the loop's rounds of the current instant.
	limit, steps int
	// perAction and perServer count the actions of the last countedSteps steps before the limit.
	perAction map[string]int
	perServer map[string]int
}

// maxStepsAtOnce returns how many steps an instant may have. In a thousand random days the busiest instant has a hundred; when
// all servers reconnect at once, each takes some thirty.
func maxStepsAtOnce(servers int) int { return 20_000 + 500*servers }

// countedSteps is the number of steps before the limit whose actions are counted.
const countedSteps = 1000

// resetSteps starts a new instant.
func (g *instantGuard) resetSteps() { g.steps = 0 }

// countAction counts an action, once the instant is near its limit. what is called only then, because most instants are short.
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

// countStep counts a step. Above the limit it records a violation, stops the run and returns false.
func (g *instantGuard) countStep(w *simulation) bool {
	g.steps++
	if g.steps <= g.limit {
		return true
	}
	w.recordEvent(history.Event{Side: history.Harness, Kind: history.Violation, Name: "I9", Server: mostFrequent(g.perServer, 1)[0], Text: g.describeLoop()})
	w.stopped = true
	return false
}

// describeLoop returns one sentence that names the most frequent actions of an endless instant.
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

// mostFrequent returns the keys with the highest counts, at most n, and one empty key if there are none.
func mostFrequent(counts map[string]int, n int) []string {
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if len(keys) == 0 {
		return []string{""}
	}
	return keys[:min(n, len(keys))]
}
