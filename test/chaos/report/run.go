package report

import (
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

// Run is what a report is made of.
type Run struct {
	History  *history.History
	Verdicts []invariant.Verdict
	// Started is when the run began, by the clock of the wall; zero if nobody knows, as for a history that somebody sent. Took
	// is how long it really took.
	Started time.Time
	Took    time.Duration
	// Command replays the run; empty: the one that follows from the tier, the scenario's file in the folder and the seed.
	Command string
	// Found is the larger day in which the violation was found, if this is the run of the smallest one that fails like it.
	Found *Found
	// Dir is where the report lies, for Terminal; empty: it was not written.
	Dir string
	// Replace lets Write replace the report of another run.
	Replace bool
}

// Found is a day that was made smaller.
type Found struct {
	Scenario scenario.Scenario
	// Command replays it.
	Command string
}

// foundText says in what day the violation was found that this run shows.
func foundText(r Run) string {
	if r.Found == nil {
		return ""
	}
	servers := 0
	for _, g := range r.Found.Scenario.Servers {
		servers += max(g.Count, 1)
	}
	return fmt.Sprintf("made smaller from %s, seed %d, with %s and %s", oneLine(r.Found.Scenario.Name), r.Found.Scenario.Seed,
		countOf(servers, "server"), countOf(len(r.Found.Scenario.Faults), "fault"))
}

// Overall is the answer of all verdicts together: violated if one is, else inconclusive if one is. No verdict at all is
// inconclusive.
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

func answerIs(a invariant.Answer) func(invariant.Verdict) bool {
	return func(v invariant.Verdict) bool { return v.Answer == a }
}

// withAnswer are the verdicts with an answer.
func withAnswer(verdicts []invariant.Verdict, a invariant.Answer) []invariant.Verdict {
	var out []invariant.Verdict
	for _, v := range verdicts {
		if v.Answer == a {
			out = append(out, v)
		}
	}
	return out
}

// summaryText is the verdict of the run.
func summaryText(verdicts []invariant.Verdict) string {
	bad, open := withAnswer(verdicts, invariant.Violated), withAnswer(verdicts, invariant.Inconclusive)
	switch {
	case len(verdicts) == 0:
		return "Nothing was judged."
	case len(bad) == 1 && bad[0].ID == invariant.Hung:
		return fmt.Sprintf("The run hangs%s: it does not come to its end.", locationText(bad[0]))
	case len(bad) == 1:
		return fmt.Sprintf("%s is violated%s: %s.", oneLine(bad[0].ID), locationText(bad[0]), lowerTitle(bad[0].Title))
	case len(bad) > 1:
		first := slices.MinFunc(bad, func(a, b invariant.Verdict) int { return int(a.At - b.At) })
		return fmt.Sprintf("%d of %d checks are violated, first %s%s: %s.", len(bad), len(verdicts), oneLine(first.ID),
			locationText(first), lowerTitle(first.Title))
	case len(open) > 0:
		return fmt.Sprintf("Nothing is violated; %s of %d could not be judged, because what they are about did not happen.",
			countOf(len(open), "check"), len(verdicts))
	}
	return fmt.Sprintf("All %d checks hold.", len(verdicts))
}

// locationText is " on web-003 at 4m12.345s", as far as it is known.
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

// lowerTitle begins a title in the middle of a sentence, and without a full stop.
func lowerTitle(title string) string {
	title = strings.TrimRight(oneLine(title), ".")
	if len(title) > 1 && title[0] >= 'A' && title[0] <= 'Z' && (title[1] < 'A' || title[1] > 'Z') {
		return strings.ToLower(title[:1]) + title[1:]
	}
	return title
}

// oneLine is text of anybody, harmless and on one line.
func oneLine(s string) string { return messages.Line(s, 300) }

// clockText is a time since the start of the run, to the millisecond.
func clockText(d time.Duration) string { return d.Round(time.Millisecond).String() }

// countOf is a number with its word: 1 server, 3 servers, 1,000 servers.
func countOf(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return withCommas(n) + " " + word
}

// withCommas is a number with commas.
func withCommas(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// runLength is how long the run was by its own clock: the time of its last event.
func runLength(h *history.History) time.Duration {
	var last time.Duration
	for i := range h.Events {
		last = max(last, h.Events[i].T)
	}
	return last
}

// lengthText is how long a run was, in words: in virtual time, which has little to do with how long it took.
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

// roundDuration is a duration with three digits or so: nobody reads nanoseconds of seconds.
func roundDuration(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// replayCommand replays the run.
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
