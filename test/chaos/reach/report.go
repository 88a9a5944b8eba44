package reach

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Findings are the results of a campaign.
type Findings struct {
	First uint64
	Days  int
	Words []Word
	// Fired is in how many of the days a fault had an effect, by its name.
	Fired   map[string]int
	Profile Profile
}

// isReachable says which files count for the bound.
func isReachable(file string) bool { return UnreachableReason(file) == "" }

// Reached returns the share of the reachable statements that was run, by package and in total.
func (f *Findings) Reached() ([]Share, Share) {
	all := f.Profile.Packages(isReachable)
	return all, Total(all)
}

// Table writes what a person reads on a terminal.
func (f *Findings) Table(w io.Writer) {
	fmt.Fprintf(w, "%d days, seeds %d to %d\n\n", f.Days, f.First, f.First+uint64(f.Days)-1)
	for _, word := range f.Words {
		fired := ""
		if n, known := f.Fired[word.Word]; known && word.Part == "faults" {
			fired = fmt.Sprintf("  had an effect in %d", n)
		}
		fmt.Fprintf(w, "%5d  %-10s %s%s\n", word.Days, word.Part, word.Word, fired)
	}
	fmt.Fprintln(w)
	reached, total := f.Reached()
	for _, s := range append(reached, Share{"in all", total.Run, total.Statements}) {
		fmt.Fprintf(w, "%5.1f %%  %5d of %5d statements  %s\n", s.Percent(), s.Run, s.Statements, s.Name)
	}
	whole := Total(f.Profile.Packages(nil))
	fmt.Fprintf(w, "%5.1f %%  %5d of %5d statements  in all, with the files that no day can run\n", whole.Percent(), whole.Run, whole.Statements)
}

// Markdown writes the page that stands beside this package.
func (f *Findings) Markdown(w io.Writer) {
	fmt.Fprintf(w, "# What random days reach\n\nWritten by `make days`: %d days, seeds %d to %d.\n\n", f.Days, f.First, f.First+uint64(f.Days)-1)
	fmt.Fprint(w, "## Statements\n\n| package | run | of | |\n|---|---:|---:|---:|\n")
	reached, total := f.Reached()
	whole := Total(f.Profile.Packages(nil))
	for _, s := range append(reached, Share{"**in all**", total.Run, total.Statements},
		Share{"with the files that no day can run", whole.Run, whole.Statements}) {
		fmt.Fprintf(w, "| %s | %d | %d | %.1f %% |\n", s.Name, s.Run, s.Statements, s.Percent())
	}
	fmt.Fprint(w, "\n## Files that no day can run\n\n| file | statements | why |\n|---|---:|---|\n")
	files := f.Profile.Files()
	for _, file := range files {
		if why := UnreachableReason(file); why != "" {
			fmt.Fprintf(w, "| %s | %d | %s |\n", file, f.Profile.FileShare(file).Statements, why)
		}
	}
	fmt.Fprint(w, "\n## What no day has run\n\nThe most first. Where no reason stands, nobody has looked yet.\n\n"+
		"| file | statements | why | lines |\n|---|---:|---|---|\n")
	slices.SortStableFunc(files, func(a, b string) int {
		_, n := f.Profile.MissedLines(a)
		_, m := f.Profile.MissedLines(b)
		return m - n
	})
	for _, file := range files {
		if lines, n := f.Profile.MissedLines(file); n > 0 && isReachable(file) {
			fmt.Fprintf(w, "| %s | %d | %s | %s |\n", file, n, MissedReason(file), lines)
		}
	}
	fmt.Fprint(w, "\n## Words of the language\n\nIn how many of the days each is said, and for a fault in how many it had an effect.\n")
	part := ""
	for _, word := range f.Words {
		if word.Part != part {
			part = word.Part
			fmt.Fprintf(w, "\n### %s\n\n| word | days | effect |\n|---|---:|---:|\n", strings.ToUpper(part[:1])+part[1:])
		}
		fired := ""
		if n, known := f.Fired[word.Word]; known && part == "faults" {
			fired = fmt.Sprint(n)
		}
		fmt.Fprintf(w, "| %s | %d | %s |\n", word.Word, word.Days, fired)
	}
}
