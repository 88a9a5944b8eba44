package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// Run holds everything that a report is made of.
type Run struct {
	History  *history.History
	Verdicts []invariant.Verdict
	// Started is the beginning of the run by the wall clock; zero if it is unknown, as for a history from another
	// machine. Took is the real duration of the run.
	Started time.Time
	Took    time.Duration
	// Command replays the run; an empty one is derived from the tier, the scenario's file in the folder and the seed.
	Command string
	// Found is the larger day in which the violation was found, if this is the run of the smallest one that fails in
	// the same way; nil otherwise.
	Found *Found
	// Lead is the ID of the check of whose violation the report tells first: that for which the day was made smaller. Empty: that which says
	// most about the cause.
	Lead string
	// Dir is the folder of the report, for Terminal; empty if none was written.
	Dir string
	// Replace lets Write replace the report of another run.
	Replace bool
}

// Found is a day that the shrinker made smaller.
type Found struct {
	Scenario scenario.Scenario
	// Command replays the larger day.
	Command string
}

// foundText describes the larger day in which the violation of this run was found; empty if there is none.
func foundText(r Run) string {
	if r.Found == nil {
		return ""
	}
	servers := 0
	for _, g := range r.Found.Scenario.Servers {
		servers += max(g.Count, 1)
	}
	day := fmt.Sprintf("seed-%d", r.Found.Scenario.Seed)
	// A random day is called after its seed.
	if name := oneLine(r.Found.Scenario.Name); name != day {
		day = fmt.Sprintf("%s, seed %d", name, r.Found.Scenario.Seed)
	}
	return fmt.Sprintf("made smaller from %s, with %s and %s", day,
		countOf(servers, "server"), countOf(len(r.Found.Scenario.Faults), "fault"))
}

// Overall returns the answer of all verdicts together: violated if one is, else inconclusive if one is. No verdict at
// all is inconclusive.
func Overall(verdicts []invariant.Verdict) invariant.Answer {
	if len(verdicts) == 0 || slices.ContainsFunc(verdicts, answerIs(invariant.Inconclusive)) {
		if slices.ContainsFunc(verdicts, answerIs(invariant.Violated)) {
			return invariant.Violated
		}
		return invariant.Inconclusive
	}
	if slices.ContainsFunc(verdicts, answerIs(invariant.Violated)) {
		return invariant.Violated
	}
	return invariant.Holds
}

// answerIs returns a condition for the functions of package slices.
func answerIs(a invariant.Answer) func(invariant.Verdict) bool {
	return func(v invariant.Verdict) bool { return v.Answer == a }
}

// withAnswer returns the verdicts with an answer.
func withAnswer(verdicts []invariant.Verdict, a invariant.Answer) []invariant.Verdict {
	var out []invariant.Verdict
	for _, v := range verdicts {
		if v.Answer == a {
			out = append(out, v)
		}
	}
	return out
}

// violations returns the violated verdicts: that of which the report tells first, then those that say most about the cause.
func (r *Run) violations() []invariant.Verdict {
	bad := withAnswer(r.Verdicts, invariant.Violated)
	slices.SortStableFunc(bad, r.compareViolations)
	return bad
}

// compareViolations is the order of violations. A hang comes before all others, also before the one that leads.
func (r *Run) compareViolations(a, b invariant.Verdict) int {
	leads := func(v invariant.Verdict) int {
		switch v.ID {
		case invariant.Hung:
			return 0
		case r.Lead:
			return 1
		}
		return 2
	}
	return cmp.Or(cmp.Compare(leads(a), leads(b)), invariant.CompareLeads(a, b))
}

// summaryText returns the verdict of the run as a sentence: of the first violation what was expected and what happened, and the names of the
// others.
func summaryText(r *Run) string {
	bad, open := r.violations(), withAnswer(r.Verdicts, invariant.Inconclusive)
	switch {
	case len(r.Verdicts) == 0:
		return "Nothing was judged."
	// A hang is told first and in words of its own: the other checks have judged a run that is not complete.
	case len(bad) == 1 && bad[0].ID == invariant.Hung:
		return fmt.Sprintf("The run hangs%s: it does not come to its end.", locationText(bad[0]))
	case len(bad) > 0:
		text := fmt.Sprintf("%s is violated%s. %s", oneLine(bad[0].ID), locationText(bad[0]), messages.Line(bad[0].Why, 600))
		if len(bad) > 1 {
			text += fmt.Sprintf(" Violated as well: %s.", joinIDs(bad[1:]))
		}
		return text
	case len(open) > 0:
		return fmt.Sprintf("Nothing is violated; %s of %d could not be judged, because what they are about did not happen.",
			countOf(len(open), "check"), len(r.Verdicts))
	}
	return fmt.Sprintf("All %d checks hold.", len(r.Verdicts))
}

// locationText returns " on web-003 at 4m12.345s", as far as known.
func locationText(v invariant.Verdict) string {
	var b strings.Builder
	if v.Server != "" {
		b.WriteString(" on " + oneLine(v.Server))
	}
	if v.At != 0 {
		b.WriteString(" at " + clockText(v.At))
	}
	return b.String()
}

// lowerTitle returns a title for the middle of a sentence: with a small letter, unless it begins with an abbreviation,
// and without a full stop.
func lowerTitle(title string) string {
	title = strings.TrimRight(oneLine(title), ".")
	if len(title) > 1 && title[0] >= 'A' && title[0] <= 'Z' && (title[1] < 'A' || title[1] > 'Z') {
		return strings.ToLower(title[:1]) + title[1:]
	}
	return title
}

// oneLine neutralises a text of any origin and puts it on one line of at most 300 characters.
func oneLine(s string) string { return messages.Line(s, 300) }

// clockText returns a time since the start of the run, to the millisecond.
func clockText(d time.Duration) string { return d.Round(time.Millisecond).String() }

// countOf returns a number with its word: 1 server, 3 servers, 1,000 servers.
func countOf(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return withCommas(n) + " " + word
}

// withCommas returns a number with a comma before every three digits.
func withCommas(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// runLength returns the length of the run by its own clock: the time of its last event.
func runLength(h *history.History) time.Duration {
	var last time.Duration
	for i := range h.Events {
		last = max(last, h.Events[i].T)
	}
	return last
}

// lengthText returns the length of a run in words. Virtual time has little to do with the real duration, so that both
// are named.
func lengthText(r Run) string {
	text := runLength(r.History).Round(time.Millisecond).String()
	if r.History.Plan.Tier == scenario.Sim {
		text += " of virtual time"
	}
	if r.Took > 0 {
		text += " in " + roundDuration(r.Took)
	}
	return text
}

// roundDuration rounds a duration to about three digits.
func roundDuration(d time.Duration) string {
	unit := time.Duration(1)
	// The unit grows by tens until at most three digits remain before it.
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// replayCommand returns the command that replays the run.
func replayCommand(r Run) string {
	if r.Command != "" {
		return oneLine(r.Command)
	}
	verb := "sim"
	if r.History.Plan.Tier == scenario.Real {
		verb = "run"
	}
	return fmt.Sprintf("mcpvisor chaos %s scenario.yaml --seed %d", verb, r.History.Plan.Seed)
}
