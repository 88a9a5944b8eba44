package load

import (
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	minLatency = time.Microsecond
	maxLatency = 24 * time.Hour

	digitsOfServer = 2
	digitsOfGroup  = 3
)

// A Cell holds the measurements of some calls. It is not safe for concurrent use.
type Cell struct {
	histogram *hdrhistogram.Histogram
	calls     int
	open      int
	outcomes  map[messages.Outcome]int
	max       time.Duration // exact
}

// NewCell makes an empty cell with the precision of a group: for recordings that are made elsewhere.
func NewCell() *Cell { return newCell(digitsOfGroup) }

// newCell makes an empty cell with so many significant digits; each one more costs about ten times the memory.
func newCell(digits int) *Cell {
	return &Cell{
		histogram: hdrhistogram.New(int64(minLatency), int64(maxLatency), digits),
		outcomes:  map[messages.Outcome]int{},
	}
}

// Record counts a call that took so long, from its planned start to its end.
func (c *Cell) Record(took time.Duration, outcome messages.Outcome) {
	took = c.countCall(took, outcome)
	if outcome != messages.OutcomeNotSent {
		_ = c.histogram.RecordValue(int64(took)) // it lies within the bounds
	}
}

// RecordClosed counts a call of a closed loop, whose callers would have sent one every interval if they had not waited for
// this one: those that are missing are added. An interval of 0 adds none.
func (c *Cell) RecordClosed(took, interval time.Duration, outcome messages.Outcome) {
	took = c.countCall(took, outcome)
	if outcome != messages.OutcomeNotSent {
		_ = c.histogram.RecordCorrectedValue(int64(took), int64(interval)) // it lies within the bounds
	}
}

// Open counts a call that has no end.
func (c *Cell) Open() {
	c.calls++
	c.open++
}

// countCall counts a call by its outcome and returns its latency within the bounds of the histogram.
func (c *Cell) countCall(took time.Duration, outcome messages.Outcome) time.Duration {
	c.calls++
	c.outcomes[outcome]++
	took = min(max(took, 0), maxLatency)
	if outcome != messages.OutcomeNotSent {
		c.max = max(c.max, took)
	}
	return took
}

// Merge adds what another cell has measured.
func (c *Cell) Merge(other *Cell) {
	if other == nil {
		return
	}
	c.histogram.Merge(other.histogram) // drops nothing: all have the same bounds
	c.calls += other.calls
	c.open += other.open
	c.max = max(c.max, other.max)
	for outcome, n := range other.outcomes {
		c.outcomes[outcome] += n
	}
}

// Percentile is the latency that so many of a hundred calls did not exceed; 0 if none was recorded.
func (c *Cell) Percentile(p float64) time.Duration {
	if p >= 100 {
		return c.max
	}
	// The histogram answers with the upper end of a bucket.
	return min(time.Duration(c.histogram.ValueAtPercentile(p)), c.max)
}

// Summary is a cell in numbers. A nil cell has the zero one.
func (c *Cell) Summary() Summary {
	if c == nil {
		return Summary{}
	}
	s := Summary{
		Calls: c.calls, Recorded: int(c.histogram.TotalCount()), Open: c.open,
		P50: c.Percentile(50), P90: c.Percentile(90), P99: c.Percentile(99), P999: c.Percentile(99.9), Max: c.max,
	}
	if len(c.outcomes) > 0 {
		s.Outcomes = map[messages.Outcome]int{}
		for outcome, n := range c.outcomes {
			s.Outcomes[outcome] = n
		}
	}
	return s
}

// Summary is the written form of a Cell. Durations are in nanoseconds.
type Summary struct {
	// Calls counts all that were planned to start; Recorded the latencies that the percentiles are of; Open those without an
	// end.
	Calls    int                      `json:"calls"`
	Recorded int                      `json:"recorded"`
	Open     int                      `json:"open,omitempty"`
	Outcomes map[messages.Outcome]int `json:"outcomes,omitempty"`
	P50      time.Duration            `json:"p50"`
	P90      time.Duration            `json:"p90"`
	P99      time.Duration            `json:"p99"`
	P999     time.Duration            `json:"p999"`
	Max      time.Duration            `json:"max"`
}

// Failed counts the calls that did not end with a result of the tool, be it an error of the tool's own.
func (s Summary) Failed() int {
	return s.Calls - s.Outcomes[messages.OutcomeResult] - s.Outcomes[messages.OutcomeToolError]
}

// String is one line for people.
func (s Summary) String() string {
	return fmt.Sprintf("%d calls, %d failed, p50 %v p90 %v p99 %v p99.9 %v max %v", s.Calls, s.Failed(), s.P50, s.P90,
		s.P99, s.P999, s.Max)
}
