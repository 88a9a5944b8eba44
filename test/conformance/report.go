package conformance

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// States of a run, in a report.
const (
	passes = "pass"
	fails  = "FAIL"
	known  = "known" // to fail, and it did
	stale  = "STALE" // known to fail, and it passed
)

// outcomeState compares a run with the expectation: an expected failure that passes is stale, and counts as a fault of the list.
func outcomeState(o Outcome, expected []ExpectedFailure) string {
	return findExpected(expected, o.Run).outcomeState(o)
}

func (e ExpectedFailure) outcomeState(o Outcome) string {
	may := e.Why != ""
	switch {
	case o.Passed() && may && e.PassesToo == "":
		return stale
	case o.Passed():
		return passes
	case may:
		return known
	}
	return fails
}

// Report writes the table: a section for each requirement set and one for what is not scored, each run with the checks
// that succeeded, and the reasons of those that did not pass.
func Report(w io.Writer, outcomes []Outcome, expected []ExpectedFailure) {
	for _, version := range Sets {
		var set []Outcome
		for _, o := range outcomes {
			if o.Version == version && o.Unscored == "" {
				set = append(set, o)
			}
		}
		writeSection(w, "required by "+version, set, expected)
	}
	var rest []Outcome
	for _, o := range outcomes {
		if o.Unscored != "" {
			rest = append(rest, o)
		}
	}
	slices.SortStableFunc(rest, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Scenario, b.Scenario), cmp.Compare(a.Version, b.Version))
	})
	writeSection(w, "not scored", rest, expected)
}

// writeSection writes the table of some runs, then the reasons of those that failed, then those that were known to fail.
func writeSection(w io.Writer, title string, outcomes []Outcome, expected []ExpectedFailure) {
	if len(outcomes) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s: %s\n", title, outcomeCounts(outcomes, expected))
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, o := range outcomes {
		name := o.Scenario
		if o.Unscored != "" {
			name += "\t" + o.Version + " " + o.Unscored
		}
		ok, all := o.countStatus("SUCCESS"), o.countStatus("SUCCESS")+len(o.Failed())
		fmt.Fprintf(t, "  %s\t%s\t%d/%d\t%.1f s\n", outcomeState(o, expected), name, ok, all, o.Took.Seconds())
	}
	_ = t.Flush() // w is a terminal or a file; a report without a reader is no error
	for _, o := range outcomes {
		if outcomeState(o, expected) != fails {
			continue
		}
		fmt.Fprintf(w, "  %s, see %s\n", o.Run, o.Folder)
		for _, line := range o.Reasons() {
			fmt.Fprintf(w, "    %s\n", line)
		}
	}
	writeKnownFailures(w, outcomes, expected)
}

// writeKnownFailures names what was expected to fail, by reason.
func writeKnownFailures(w io.Writer, outcomes []Outcome, expected []ExpectedFailure) {
	runsByReason := map[string]int{}
	for _, o := range outcomes {
		if outcomeState(o, expected) == known {
			runsByReason[findExpected(expected, o.Run).Why]++
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(runsByReason)) {
		fmt.Fprintf(w, "  %d known to fail: %s\n", runsByReason[reason], oneLine(reason))
	}
}

// outcomeCounts sums up some runs in one line. A stale one has passed.
func outcomeCounts(outcomes []Outcome, expected []ExpectedFailure) string {
	count := map[string]int{}
	for _, o := range outcomes {
		count[outcomeState(o, expected)]++
	}
	parts := []string{fmt.Sprintf("%d of %d pass", count[passes]+count[stale], len(outcomes))}
	if n := count[fails]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d FAIL", n))
	}
	if n := count[known]; n > 0 {
		parts = append(parts, fmt.Sprintf("%d known to fail", n))
	}
	return strings.Join(parts, ", ")
}

// Line is one run as it ends.
func Line(o Outcome, expected []ExpectedFailure) string {
	return fmt.Sprintf("%-5s %s (%s)", outcomeState(o, expected), o.Run, o.Took.Round(100*time.Millisecond))
}
