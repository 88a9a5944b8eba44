package report

import (
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
)

// exactSteps bounds the steps of a count that the page holds exactly; more are joined to equal parts of the run, each
// with its highest count.
const exactSteps = 12_000

// steps is a count over time: each level holds from its time to the next.
type steps struct {
	// At holds microseconds, each counted from the one before.
	At    []int64 `json:"at"`
	Level []int   `json:"level"`
}

// stepsOf turns sorted changes into steps.
func stepsOf(changes []change, end time.Duration) steps {
	var out steps
	last := time.Duration(0)
	// put leaves out a step that changes nothing; the differences of At are taken in microseconds, so that rounding does not
	// add up.
	put := func(at time.Duration, level int) {
		if n := len(out.Level); n > 0 && out.Level[n-1] == level {
			return
		}
		out.At = append(out.At, (at.Microseconds() - last.Microseconds()))
		out.Level = append(out.Level, level)
		last = at
	}
	put(0, 0)
	if len(changes) > exactSteps {
		// Fewer parts than steps are enough: no screen shows thousands of them, and the highest count of each part keeps its
		// peaks.
		const parts = exactSteps / 4
		for i, level := range highestPerPart(changes, parts, end) {
			put(time.Duration(float64(end)*float64(i)/parts), level)
		}
		return out
	}
	held := 0
	for i, c := range changes {
		held += c.delta
		// A slot that is freed and taken in one instant was never empty.
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		put(c.at, held)
	}
	return out
}

// columnWidth returns the width of the columns in which restarts are counted: a minute, or less in a short run.
func columnWidth(end time.Duration) time.Duration {
	switch {
	case end >= 20*time.Minute:
		return time.Minute
	case end >= 3*time.Minute:
		return 10 * time.Second
	}
	return time.Second
}

// countPerColumn returns how many times lie in each column.
func countPerColumn(times []time.Duration, width, end time.Duration) []int {
	out := make([]int, int(end/width)+1)
	for _, t := range times {
		if i := int(t / width); i < len(out) {
			out[i]++
		}
	}
	return out
}

// latencyParts is the number of parts of the run for which latencies are drawn.
const latencyParts = 240

// latencySeries describes the calls of the healthy or the faulty servers over time, by their planned starts:
// percentiles in microseconds, -1 where none was recorded.
type latencySeries struct {
	P50    []int64 `json:"p50"`
	P99    []int64 `json:"p99"`
	Calls  []int   `json:"calls"`
	Failed []int   `json:"failed"`
}

// latencyByHealth collects the exact latencies of each part, which are so few that a histogram would only lose
// precision.
func latencyByHealth(h *history.History, l *load.Latencies, end time.Duration) map[load.Health]*latencySeries {
	out := map[load.Health]*latencySeries{}
	took := map[load.Health][][]time.Duration{}
	for _, health := range load.Healths {
		out[health] = &latencySeries{P50: make([]int64, latencyParts), P99: make([]int64, latencyParts),
			Calls: make([]int, latencyParts), Failed: make([]int, latencyParts)}
		took[health] = make([][]time.Duration, latencyParts)
	}
	x := h.Index()
	for _, c := range x.Calls() {
		begin, ok := x.Time(c.Begin)
		if !ok {
			continue
		}
		health := l.HealthOf(c.Server)
		if out[health] == nil {
			continue
		}
		at := partIndex(begin, latencyParts, end)
		out[health].Calls[at]++
		if len(c.Ends) == 0 {
			out[health].Failed[at]++
			continue
		}
		e := x.Event(c.Ends[0])
		if e.Outcome != messages.OutcomeResult && e.Outcome != messages.OutcomeToolError {
			out[health].Failed[at]++
		}
		// A call that was not sent says nothing about the speed of its server.
		if e.Outcome != messages.OutcomeNotSent {
			took[health][at] = append(took[health][at], e.T-begin)
		}
	}
	for health, parts := range took {
		for i, some := range parts {
			slices.Sort(some)
			out[health].P50[i], out[health].P99[i] = percentile(some, 50), percentile(some, 99)
		}
	}
	return out
}

// percentile returns the nearest rank of sorted values, in microseconds; -1 if there are none.
func percentile(sorted []time.Duration, p int) int64 {
	if len(sorted) == 0 {
		return -1
	}
	return sorted[(len(sorted)*p+99)/100-1].Microseconds()
}
