package planted

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// A Result says which search found one bug. A nil field means that this search was not run.
type Result struct {
	Days  *SearchResult `json:"days,omitempty"`
	Tests *TestResult   `json:"tests,omitempty"`
}

// Results holds the results of several bugs, by the bug's name.
type Results map[string]Result

// Detected reports whether random days or unit tests found the bug.
func (r Result) Detected() bool {
	return r.Days != nil && r.Days.Detected() || r.Tests != nil && r.Tests.Detected()
}

// daysText returns the result of the random days in a few words: a dash for not found, with a remark if not all days were tried, and
// in brackets the invariants that would have explained the bug if others found it.
func (r Result) daysText(b bugs.Bug) string {
	switch f := r.Days; {
	case f == nil:
		return ""
	case f.Crash != "":
		return "crash: " + cutText(strings.SplitN(f.Crash, "\n", 2)[0], 80)
	case f.Hang != "":
		return "hang: " + f.Hang
	case f.Cut:
		return "– (the time was over)"
	case f.Seed == 0:
		return "–"
	// The invariant that was violated is one of those that the row names.
	case b.ExplainedBy(f.Violated):
		return strings.Join(f.Violated, " ")
	default:
		return strings.Join(f.Violated, " ") + " (not " + strings.Join(b.Finds, ", ") + ")"
	}
}

// testsText returns the result of the unit tests in a few words: the first failed test, or a dash for none.
func (r Result) testsText() string {
	switch t := r.Tests; {
	case t == nil:
		return ""
	case t.Hang:
		return "hang"
	case t.Failed == "":
		return "–"
	default:
		return t.Failed
	}
}

// Line returns one line for the engineer who watches the run.
func (r Result) Line(b bugs.Bug) string {
	line := b.Name + ": "
	if r.Days != nil {
		line += fmt.Sprintf("days: %s after %d, %s; ", r.daysText(b), r.Days.Tried, r.Days.CPU.Round(time.Second/10))
	}
	if r.Tests != nil {
		line += fmt.Sprintf("tests: %s, %s; ", r.testsText(), r.Tests.CPU.Round(time.Second/10))
	}
	if !r.Detected() {
		line += "NOT FOUND: " + b.Why
	}
	if r.Days != nil && r.Days.Why != "" {
		line += r.Days.Why
	}
	return line
}

// A Table summarizes the results of many bugs.
type Table struct {
	results Results
	// total counts the bugs with a result; searched and tested those with each search, both those with the two. days and tests
	// count the found ones, explained those that an explaining invariant found, and neither those of both that were not found.
	total, searched, days, explained, tested, tests, both, neither int
	// seeds and lines hold, for each bug that a day found, the days until then and the lines of its scenario.
	seeds, lines []int
	cpu          time.Duration
	// unexplained names the bugs that neither search found and that are not in bugs.Unseen.
	unexplained []string
}

// NewTable counts the results of the bugs that are in bugs.All; a result of a bug that was removed since is left out.
func NewTable(all Results) Table {
	t := Table{results: all}
	for _, b := range bugs.All {
		r, ok := all[b.Name]
		if !ok {
			continue
		}
		t.total++
		if f := r.Days; f != nil {
			t.searched++
			t.cpu += f.CPU
			if f.Detected() {
				t.days++
			}
			if b.ExplainedBy(f.Violated) {
				t.explained++
			}
			if f.Seed != 0 {
				t.seeds = append(t.seeds, f.Tried)
				if f.Lines > 0 {
					t.lines = append(t.lines, f.Lines)
				}
			}
		}
		if r.Tests != nil {
			t.tested++
			if r.Tests.Detected() {
				t.tests++
			}
		}
		// Only a bug with both searches can be found by neither.
		if r.Days != nil && r.Tests != nil {
			t.both++
			if !r.Detected() {
				t.neither++
				if _, argued := bugs.Unseen[b.Name]; !argued {
					t.unexplained = append(t.unexplained, b.Name)
				}
			}
		}
	}
	return t
}

// Passed reports whether each bug with both searches was found, or is in bugs.Unseen.
func (t Table) Passed() bool { return len(t.unexplained) == 0 }

// summaryLines returns the totals, without those of a search that was not run.
func (t Table) summaryLines() (lines []string) {
	addLine := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if t.searched > 0 {
		addLine("found by random days: %d of %d (%d %%), %d of them by an invariant that explains the bug", t.days, t.searched,
			percentOf(t.days, t.searched), t.explained)
		addLine("median of the days that it took: %d; of the lines of the shrunk scenario: %d", medianOf(t.seeds), medianOf(t.lines))
		addLine("found per minute of processor time: %.1f (%s in all, shrinking included)", float64(t.days)/max(t.cpu.Minutes(), 0.001),
			t.cpu.Round(time.Second))
	}
	if t.tested > 0 {
		addLine("found by the unit tests of the package: %d of %d (%d %%)", t.tests, t.tested, percentOf(t.tests, t.tested))
	}
	if t.both > 0 {
		addLine("found by neither: %d of %d (%d %%)", t.neither, t.both, percentOf(t.neither, t.both))
	}
	if len(t.unexplained) > 0 {
		addLine("found by neither, and not in bugs.Unseen: %s", strings.Join(t.unexplained, ", "))
	}
	return lines
}

// percentOf returns n in per cent of total, rounded; 0 of an empty total.
func percentOf(n, total int) int { return (100*n + total/2) / max(total, 1) }

// medianOf returns the upper median; 0 for no values. It sorts values.
func medianOf(values []int) int {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// tableRows returns one row per bug, in the order of bugs.All.
func (t Table) tableRows() table.Writer {
	w := table.NewWriter()
	w.AppendHeader(table.Row{"bug", "in", "random days", "days", "lines", "unit tests"})
	for _, b := range bugs.All {
		r, ok := t.results[b.Name]
		if !ok {
			continue
		}
		var days, lines any = "", ""
		if r.Days != nil && r.Days.Seed != 0 {
			days, lines = r.Days.Tried, r.Days.Lines
		}
		w.AppendRow(table.Row{b.Name, b.Package, r.daysText(b), days, lines, r.testsText()})
	}
	return w
}

// Text returns the table and the totals for a terminal.
func (t Table) Text() string {
	return t.tableRows().Render() + "\n" + strings.Join(t.summaryLines(), "\n")
}

// Markdown returns the same for a file, with the totals first.
func (t Table) Markdown() string {
	text := "# Who finds planted bugs\n\nWritten by `make planted`. A dash is a bug that was looked for and not found.\n\n"
	for _, line := range t.summaryLines() {
		text += "- " + line + "\n"
	}
	return text + "\n" + t.tableRows().RenderMarkdown() + "\n"
}
