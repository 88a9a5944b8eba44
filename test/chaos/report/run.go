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

// found says in what day the violation was found that this run shows.
func found(r Run) string {
	if r.Found == nil {
		return ""
	}
	servers := 0
	for _, g := range r.Found.Scenario.Servers {
		servers += max(g.Count, 1)
	}
	return fmt.Sprintf("made smaller from %s, seed %d, with %s and %s", line(r.Found.Scenario.Name), r.Found.Scenario.Seed,
		count(servers, "server"), count(len(r.Found.Scenario.Faults), "fault"))
}

// Overall is the answer of all verdicts together: violated if one is, else inconclusive if one is. No verdict at all is
// inconclusive.
func Overall(verdicts []invariant.Verdict) invariant.Answer {
	if len(verdicts) == 0 || slices.ContainsFunc(verdicts, is(invariant.Inconclusive)) {
		if slices.ContainsFunc(verdicts, is(invariant.Violated)) {
			return invariant.Violated
		}
		return invariant.Inconclusive
	}
	if slices.ContainsFunc(verdicts, is(invariant.Violated)) {
		return invariant.Violated
	}
	return invariant.Holds
}

func is(a invariant.Answer) func(invariant.Verdict) bool {
	return func(v invariant.Verdict) bool { return v.Answer == a }
}

// those are the verdicts with an answer.
func those(verdicts []invariant.Verdict, a invariant.Answer) []invariant.Verdict {
	var out []invariant.Verdict
	for _, v := range verdicts {
		if v.Answer == a {
			out = append(out, v)
		}
	}
	return out
}

// sentence is the verdict of the run.
func sentence(verdicts []invariant.Verdict) string {
	bad, open := those(verdicts, invariant.Violated), those(verdicts, invariant.Inconclusive)
	switch {
	case len(verdicts) == 0:
		return "Nothing was judged."
	case len(bad) == 1 && bad[0].ID == invariant.Hung:
		return fmt.Sprintf("The run hangs%s: it does not come to its end.", where(bad[0]))
	case len(bad) == 1:
		return fmt.Sprintf("%s is violated%s: %s.", line(bad[0].ID), where(bad[0]), lower(bad[0].Title))
	case len(bad) > 1:
		first := slices.MinFunc(bad, func(a, b invariant.Verdict) int { return int(a.At - b.At) })
		return fmt.Sprintf("%d of %d checks are violated, first %s%s: %s.", len(bad), len(verdicts), line(first.ID),
			where(first), lower(first.Title))
	case len(open) > 0:
		return fmt.Sprintf("Nothing is violated; %s of %d could not be judged, because what they are about did not happen.",
			count(len(open), "check"), len(verdicts))
	}
	return fmt.Sprintf("All %d checks hold.", len(verdicts))
}

// where is " on web-003 at 4m12.345s", as far as it is known.
func where(v invariant.Verdict) string {
	var b strings.Builder
	if v.Server != "" {
		b.WriteString(" on " + line(v.Server))
	}
	if v.At != 0 {
		b.WriteString(" at " + clock(v.At))
	}
	return b.String()
}

// lower begins a title in the middle of a sentence, and without a full stop.
func lower(title string) string {
	title = strings.TrimRight(line(title), ".")
	if len(title) > 1 && title[0] >= 'A' && title[0] <= 'Z' && (title[1] < 'A' || title[1] > 'Z') {
		return strings.ToLower(title[:1]) + title[1:]
	}
	return title
}

// line is text of anybody, harmless and on one line.
func line(s string) string { return messages.Line(s, 300) }

// clock is a time since the start of the run, to the millisecond.
func clock(d time.Duration) string { return d.Round(time.Millisecond).String() }

// count is a number with its word: 1 server, 3 servers, 1,000 servers.
func count(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return thousands(n) + " " + word
}

// thousands is a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// lasted is how long the run was by its own clock: the time of its last event.
func lasted(h *history.History) time.Duration {
	var last time.Duration
	for i := range h.Events {
		last = max(last, h.Events[i].T)
	}
	return last
}

// span is how long a run was, in words: in virtual time, which has little to do with how long it took.
func span(r Run) string {
	text := lasted(r.History).Round(time.Millisecond).String()
	if r.History.Plan.Tier == scenario.Sim {
		text += " of virtual time"
	}
	if r.Took > 0 {
		text += " in " + rounded(r.Took)
	}
	return text
}

// rounded is a duration with three digits or so: nobody reads nanoseconds of seconds.
func rounded(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// command replays the run.
func command(r Run) string {
	if r.Command != "" {
		return line(r.Command)
	}
	verb := "sim"
	if r.History.Plan.Tier == scenario.Real {
		verb = "run"
	}
	return fmt.Sprintf("mcpvisor chaos %s scenario.yaml --seed %d", verb, r.History.Plan.Seed)
}
