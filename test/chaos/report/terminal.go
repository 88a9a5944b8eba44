package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/load"
)

const (
	// lineWidth bounds the lines; only commands and paths, which must stay whole, are longer.
	lineWidth = 80
	// maxLines bounds all lines together.
	maxLines = 25
	// maxReasonLines bounds the lines for the reason of one violation.
	maxReasonLines = 6
)

// answerColours holds the colours of a terminal. Each answer also has a word, for readers without colours.
var answerColours = map[invariant.Answer]string{
	invariant.Holds: "\x1b[1;32m", invariant.Violated: "\x1b[1;31m", invariant.Inconclusive: "\x1b[1;33m",
}

// answerWords holds the words for the verdict of a run.
var answerWords = map[invariant.Answer]string{
	invariant.Holds: "PASSED", invariant.Violated: "VIOLATED", invariant.Inconclusive: "INCONCLUSIVE",
}

// Word returns the verdict of a run in one word, in capitals.
func Word(verdicts []invariant.Verdict) string {
	if slices.ContainsFunc(verdicts, func(v invariant.Verdict) bool { return v.ID == invariant.Hung }) {
		return "HUNG"
	}
	return answerWords[Overall(verdicts)]
}

// Terminal writes at most 25 lines: the verdict first, the command that replays the run last.
func Terminal(w io.Writer, r Run, color bool) {
	h := r.History
	answer := Overall(r.Verdicts)
	bad, open := r.violations(), withAnswer(r.Verdicts, invariant.Inconclusive)
	head := &terminalLines{color: color}
	head.addLine("%s  %s, seed %d", head.paintText(Word(r.Verdicts), answerColours[answer]), messages.Line(h.Plan.Scenario.Name, 40),
		h.Plan.Seed)
	// Each violation follows below, so that a count suffices here.
	if len(bad) > 0 {
		head.addLine("%s", answerCounts(r.Verdicts))
	} else {
		head.addWrapped("", summaryText(&r), 2)
	}
	head.addWrapped("", fmt.Sprintf("%s, %s, %s, %s.", countOf(len(h.Plan.Servers), "server"),
		countOf(len(h.Plan.Faults), "fault"), countOf(len(h.Events), "event"), lengthText(r)), 2)

	// The tail is made before the violations, because its length decides how many lines they get.
	tail := &terminalLines{color: color}
	// A small day that violates something has no occasion for most checks, which says nothing.
	if len(open) > 0 && len(bad) == 0 {
		tail.addLine("")
		tail.addWrapped("  ", "inconclusive: "+joinIDs(open), 2)
	}
	tail.addLatencies(load.Measure(h))
	tail.addLine("")
	if r.Dir != "" {
		tail.addLine("report   %s", messages.Line(filepath.Join(r.Dir, htmlFile), 0))
	}
	if r.Found != nil {
		tail.addWrapped("found    ", foundText(r)+":", 1)
		tail.addLine("         %s", oneLine(r.Found.Command))
	}
	tail.addLine("%s", map[bool]string{true: "replay:", false: "again:"}[answer == invariant.Violated])
	tail.addLine("%s", replayCommand(r))

	// The violations get the lines that head and tail leave.
	head.addViolations(bad, maxLines-len(head.all)-len(tail.all))
	_, _ = io.WriteString(w, strings.Join(append(head.all, tail.all...), "\n")+"\n")
}

// answerCounts counts the verdicts by their answers, as a sentence.
func answerCounts(verdicts []invariant.Verdict) string {
	are := func(n int, rest string) string {
		verb := " are "
		if n == 1 {
			verb = " is "
		}
		return withCommas(n) + verb + rest
	}
	bad, open := len(withAnswer(verdicts, invariant.Violated)), len(withAnswer(verdicts, invariant.Inconclusive))
	text := fmt.Sprintf("Of %s, %s", countOf(len(verdicts), "check"), are(bad, "violated"))
	if open > 0 {
		text += ", " + are(open, "inconclusive")
	}
	return text + "."
}

// terminalLines collects the lines to write.
type terminalLines struct {
	all   []string
	color bool
}

// addLine adds one formatted line. Texts of servers must have passed messages.Line before.
func (t *terminalLines) addLine(format string, args ...any) {
	t.all = append(t.all, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

// paintText returns a text in a colour, or unchanged where the writer is no terminal.
func (t *terminalLines) paintText(s, colour string) string {
	if !t.color {
		return s
	}
	return colour + s + "\x1b[0m"
}

// addWrapped writes text over at most most lines, broken at spaces; the rest is cut with "…".
func (t *terminalLines) addWrapped(indent, text string, most int) {
	room := lineWidth - len(indent)
	text = messages.Line(text, 0)
	for n := 1; text != ""; n++ {
		runes := []rune(text)
		if len(runes) <= room {
			t.addLine("%s%s", indent, text)
			return
		}
		if n == most {
			t.addLine("%s%s…", indent, strings.TrimRight(string(runes[:room-1]), " "))
			return
		}
		// A word longer than half of the line is cut in its middle, so that each line makes progress.
		cut := room
		for i := room; i > room/2; i-- {
			if runes[i] == ' ' {
				cut = i
				break
			}
		}
		t.addLine("%s%s", indent, strings.TrimRight(string(runes[:cut]), " "))
		text = strings.TrimLeft(string(runes[cut:]), " ")
	}
}

// addViolations writes the violations into room lines: with as much of their reasons as fits and, if there is no room
// for any reason, as many violations as fit.
func (t *terminalLines) addViolations(bad []invariant.Verdict, room int) {
	if len(bad) == 0 {
		return
	}
	// Each round shortens all reasons by a line, so that no violation is shown at the expense of another one.
	for most := maxReasonLines; ; most-- {
		block := &terminalLines{color: t.color}
		block.addLine("")
		for i, v := range bad {
			if most == 0 && len(block.all) == room-1 && i < len(bad)-1 {
				block.addWrapped("  ", "and "+joinIDs(bad[i:]), 1)
				break
			}
			block.addViolation(v, most)
		}
		if len(block.all) <= room || most == 0 {
			t.all = append(t.all, block.all...)
			return
		}
	}
}

// addViolation writes the head of a violation and at most most lines of its reason; with 0 the head alone.
func (t *terminalLines) addViolation(v invariant.Verdict, most int) {
	id := messages.Line(v.ID, 30)
	head := fmt.Sprintf("%-4s %s%s", id, messages.Line(lowerTitle(v.Title), 40), locationText(v))
	if runes := []rune(head); len(runes) > lineWidth-2 {
		head = string(runes[:lineWidth-3]) + "…"
	}
	t.addLine("  %s%s", t.paintText(head[:len(id)], answerColours[invariant.Violated]), head[len(id):])
	if most > 0 {
		t.addWrapped("       ", v.Why, most)
	}
	// The story before a violation is shown only while every reason fits as a whole.
	if most == maxReasonLines && v.Before != "" {
		t.addWrapped("       ", v.Before, most)
	}
}

// joinIDs returns the ids of verdicts with commas between them.
func joinIDs(verdicts []invariant.Verdict) string {
	ids := make([]string, len(verdicts))
	for i, v := range verdicts {
		ids[i] = messages.Line(v.ID, 40)
	}
	return strings.Join(ids, ", ")
}

// addLatencies writes three lines, if there was load. Calls to broken servers are counted apart, because their failures
// are no violation.
func (t *terminalLines) addLatencies(l *load.Latencies) {
	headed := false
	for _, health := range load.Healths {
		var parts []string
		// Failures are summed over the whole run; the latencies of a time with faults and one without must not be mixed.
		calls, failed := 0, 0
		for _, w := range load.Windows {
			c := l.Group(health, w)
			if c == nil {
				continue
			}
			s := c.Summary()
			calls, failed = calls+s.Calls, failed+s.Failed()
			if s.Recorded > 0 {
				parts = append(parts, string(w)+" "+shortLatency(s.P99))
			}
		}
		if calls == 0 {
			continue
		}
		if !headed {
			t.addLine("")
			t.addLine("Calls to the servers that the day does not break, and to those that it does:")
			headed = true
		}
		text := fmt.Sprintf("%s of %s failed", withCommas(failed), countOf(calls, "call"))
		if len(parts) > 0 {
			text += "; p99 " + strings.Join(parts, ", ")
		}
		t.addWrapped(fmt.Sprintf("%-7s  ", health), text, 1)
	}
}

// shortLatency returns a latency with about three digits.
func shortLatency(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return roundDuration(d)
}
