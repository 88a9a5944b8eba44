package planted

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// Result is who found one bug. What is nil did not look.
type Result struct {
	Days  *SearchResult `json:"days,omitempty"`
	Tests *TestResult   `json:"tests,omitempty"`
}

// Results are those of several bugs, by name.
type Results map[string]Result

// Detected reports whether anybody found it.
func (r Result) Detected() bool {
	return r.Days != nil && r.Days.Detected() || r.Tests != nil && r.Tests.Detected()
}

// daysText are what random days say of a bug, in a few words.
func (r Result) daysText(b Bug) string {
	switch f := r.Days; {
	case f == nil:
		return ""
	case f.Crash != "":
		return "crash: " + cutText(strings.SplitN(f.Crash, "\n", 2)[0], 80)
	case f.Hang != "":
		return "hang: " + f.Hang
	case f.Seed == 0:
		return "–"
	case b.Explained(*f):
		return strings.Join(f.Violated, " ")
	default:
		return strings.Join(f.Violated, " ") + " (not " + strings.Join(b.Finds, ", ") + ")"
	}
}

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

// Line is one line for whoever watches.
func (r Result) Line(b Bug) string {
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

// Table is what can be said of many bugs.
type Table struct {
	results Results
	// Of how many bugs it is, and how many of them random days found, unit tests found, and neither.
	total, searched, days, explained, tested, tests, both, neither int
	seeds, lines                                                   []int
	cpu                                                            time.Duration
	unexplained                                                    []string
}

// NewTable counts.
func NewTable(all Results) Table {
	t := Table{results: all}
	for _, b := range Bugs {
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
			if b.Explained(*f) {
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
		if r.Days != nil && r.Tests != nil {
			t.both++
			if !r.Detected() {
				t.neither++
				if _, argued := Unseen[b.Name]; !argued {
					t.unexplained = append(t.unexplained, b.Name)
				}
			}
		}
	}
	return t
}

// Passed reports whether each bug that was looked for in both ways was found, or is in Unseen.
func (t Table) Passed() bool { return len(t.unexplained) == 0 }

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
		addLine("found by neither, and not in planted.Unseen: %s", strings.Join(t.unexplained, ", "))
	}
	return lines
}

func percentOf(n, total int) int { return (100*n + total/2) / max(total, 1) }

func medianOf(values []int) int {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func (t Table) tableRows() table.Writer {
	w := table.NewWriter()
	w.AppendHeader(table.Row{"bug", "in", "random days", "days", "lines", "unit tests"})
	for _, b := range Bugs {
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

// Text is the table for a terminal, with what can be said of all.
func (t Table) Text() string {
	return t.tableRows().Render() + "\n" + strings.Join(t.summaryLines(), "\n")
}

// Markdown is the same for a file.
func (t Table) Markdown() string {
	text := "# Who finds planted bugs\n\nWritten by `make planted`. A dash is a bug that was looked for and not found.\n\n"
	for _, line := range t.summaryLines() {
		text += "- " + line + "\n"
	}
	return text + "\n" + t.tableRows().RenderMarkdown() + "\n"
}
