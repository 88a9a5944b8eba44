// Package row is the form in which the benchmarks of this folder report their measurements: sections, each with a table of its
// own, and rows that are compared with a target.
//
// A row with a target holds if its value is at most the target, or at most 1.5 times the floor of the same run: no client can
// beat the floor, and machines differ in where it lies.
//
//	report.Rows = append(report.Rows, row.Row{…})
//	fmt.Print(row.Table(rows))
//
// How it fits: the measuring packages make a [Section]; command run calls its Run and prints the [Report]. The package measures
// nothing but the processor time of this process ([CPU]).
package row

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Slack is the factor by which a row may exceed the floor of the same run and still hold.
const Slack = 1.5

// Row is one measured value; smaller is better.
type Row struct {
	// Case names the measurement: "streamable HTTP, 100 B, 64 callers".
	Case string
	// Value is in Unit: "× mcp-go", "µs", "allocations", "KB", "s". Target and Floor have the same unit; 0 means none.
	Value         float64
	Unit          string
	Target, Floor float64
}

// Holds reports whether the row reaches its target or stays near its floor. A row without a target holds.
func (r Row) Holds() bool {
	return r.Target == 0 || r.Value <= r.Target || r.Floor > 0 && r.Value <= Slack*r.Floor
}

// Verdict says in words whether the row holds, and by what. It is empty without a target.
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

// Options are given to every section.
type Options struct {
	// Rounds is the number of measurements of each contender, For the duration of each.
	Rounds int
	For    time.Duration
	// Dir is a folder for files of the section; the caller removes it at the end.
	Dir string
	// Progress reports a step to a person who waits.
	Progress func(format string, args ...any)
}

// Report is the result of a section.
type Report struct {
	// Text is the section's table with remarks, as it is printed.
	Text string
	// Rows are compared with their targets.
	Rows []Row
	// Samples are single measurements in the form that benchstat reads, empty if there are none.
	Samples string
}

// Section is one part of the benchmark. Run prints nothing.
type Section struct {
	Name string
	Does string
	Run  func(ctx context.Context, o Options) (Report, error)
}

// Table returns the rows that have a target, with their verdicts.
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

// formatValue writes a value with three significant digits; 0 is empty.
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
