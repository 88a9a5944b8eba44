// Package row is the form in which the benchmarks of this folder tell what they measured: sections, each with a table of its
// own, and rows that are held against a target.
//
// A row with a target holds if its value is at most the target, or at most 1.5 times the floor of the same run: what a
// client cannot beat is not its fault, and machines differ in where that lies.
package row

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Slack is how many times the floor of the same run a row may be and still hold.
const Slack = 1.5

// Row is one measured value. Smaller is better.
type Row struct {
	// Case says what was measured: "streamable HTTP, 100 B, 64 callers".
	Case string
	// Value is in Unit: "× mcp-go", "µs", "allocations", "KB", "s". Target and Floor are in the same unit, 0 for none.
	Value         float64
	Unit          string
	Target, Floor float64
}

// Holds reports whether the row reaches its target, or stays near its floor. A row without a target holds.
func (r Row) Holds() bool {
	return r.Target == 0 || r.Value <= r.Target || r.Floor > 0 && r.Value <= Slack*r.Floor
}

// Verdict says in words whether the row holds, and by what.
func (r Row) Verdict() string {
	switch {
	case r.Target == 0:
		return ""
	case r.Value <= r.Target:
		return "holds"
	case r.Holds():
		return fmt.Sprintf("holds: %.2g times the floor", r.Value/r.Floor)
	}
	return "misses"
}

// Options are what every section is given.
type Options struct {
	// Rounds is how often each contender is measured, For how long each time.
	Rounds int
	For    time.Duration
	// Dir is a folder for files of the section, which is removed at the end.
	Dir string
	// Progress says what is being done, for a person who waits.
	Progress func(format string, args ...any)
}

// Report is what a section has measured.
type Report struct {
	// Text is the section's own table and remarks, as it is printed.
	Text string
	// Rows are held against their targets.
	Rows []Row
	// Samples are single measurements in the form that benchstat reads; may be empty.
	Samples string
}

// Section is one part of the benchmark. Run prints nothing.
type Section struct {
	Name string
	Does string
	Run  func(ctx context.Context, o Options) (Report, error)
}

// Table is the rows that have a target, with what became of it.
func Table(rows []Row) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"case", "measured", "target", "floor", ""})
	for _, r := range rows {
		if r.Target == 0 {
			continue
		}
		t.AppendRow(table.Row{r.Case, formatValue(r.Value) + " " + r.Unit, "≤ " + formatValue(r.Target), formatValue(r.Floor), r.Verdict()})
	}
	return t.Render()
}

// formatValue is a value with three digits that count; empty for 0.
func formatValue(v float64) string {
	switch {
	case v == 0:
		return ""
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	s := strconv.FormatFloat(v, 'g', 3, 64)
	if strings.Contains(s, "e") {
		s = strconv.FormatFloat(v, 'f', 4, 64)
	}
	return s
}
