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
	// columns is what is written for; only commands and paths, which nobody may break, are longer.
	columns = 80
	// rows is all there is.
	rows = 25
	// reasons is how many lines the reason of one violation gets at most.
	reasons = 6
)

// colours of a terminal. Each is also a word.
var colours = map[invariant.Answer]string{
	invariant.Holds: "\x1b[1;32m", invariant.Violated: "\x1b[1;31m", invariant.Inconclusive: "\x1b[1;33m",
}

// words are what the verdict of a run is called.
var words = map[invariant.Answer]string{
	invariant.Holds: "PASSED", invariant.Violated: "VIOLATED", invariant.Inconclusive: "INCONCLUSIVE",
}

// Word is what the verdict of a run is called: in capitals, so that nobody takes one for another.
func Word(verdicts []invariant.Verdict) string {
	if slices.ContainsFunc(verdicts, func(v invariant.Verdict) bool { return v.ID == invariant.Hung }) {
		return "HUNG"
	}
	return words[Overall(verdicts)]
}

// Terminal writes at most 25 lines: the verdict first, the command that replays the run last.
func Terminal(w io.Writer, r Run, color bool) {
	h := r.History
	answer := Overall(r.Verdicts)
	bad, open := those(r.Verdicts, invariant.Violated), those(r.Verdicts, invariant.Inconclusive)
	head := &lines{color: color}
	head.add("%s  %s, seed %d", head.paint(Word(r.Verdicts), colours[answer]), messages.Line(h.Plan.Scenario.Name, 40),
		h.Plan.Seed)
	if len(bad) > 0 { // each is told below
		head.add("%s", tally(r.Verdicts))
	} else {
		head.wrap("", sentence(r.Verdicts), 2)
	}
	head.wrap("", fmt.Sprintf("%s, %s, %s, %s.", count(len(h.Plan.Servers), "server"),
		count(len(h.Plan.Faults), "fault"), count(len(h.Events), "event"), span(r)), 2)

	tail := &lines{color: color}
	if len(open) > 0 {
		tail.add("")
		tail.wrap("  ", "inconclusive: "+enumerated(open), 2)
	}
	tail.latencies(load.Measure(h))
	tail.add("")
	if r.Dir != "" {
		tail.add("report   %s", messages.Line(filepath.Join(r.Dir, htmlFile), 0))
	}
	if r.Found != nil {
		tail.wrap("found    ", found(r)+":", 1)
		tail.add("         %s", line(r.Found.Command))
	}
	tail.add("%s", map[bool]string{true: "again:", false: "replay:"}[answer == invariant.Holds])
	tail.add("%s", command(r))

	head.violations(bad, rows-len(head.all)-len(tail.all))
	_, _ = io.WriteString(w, strings.Join(append(head.all, tail.all...), "\n")+"\n")
}

// tally counts the verdicts by their answers.
func tally(verdicts []invariant.Verdict) string {
	are := func(n int, rest string) string {
		verb := " are "
		if n == 1 {
			verb = " is "
		}
		return thousands(n) + verb + rest
	}
	bad, open := len(those(verdicts, invariant.Violated)), len(those(verdicts, invariant.Inconclusive))
	text := fmt.Sprintf("Of %s, %s", count(len(verdicts), "check"), are(bad, "violated"))
	if open > 0 {
		text += ", " + are(open, "inconclusive")
	}
	return text + "."
}

// lines are what is written.
type lines struct {
	all   []string
	color bool
}

func (t *lines) add(format string, args ...any) {
	t.all = append(t.all, strings.TrimRight(fmt.Sprintf(format, args...), " "))
}

func (t *lines) paint(s, colour string) string {
	if !t.color {
		return s
	}
	return colour + s + "\x1b[0m"
}

// wrap writes text over at most so many lines.
func (t *lines) wrap(indent, text string, most int) {
	room := columns - len(indent)
	text = messages.Line(text, 0)
	for n := 1; text != ""; n++ {
		runes := []rune(text)
		if len(runes) <= room {
			t.add("%s%s", indent, text)
			return
		}
		if n == most {
			t.add("%s%s…", indent, strings.TrimRight(string(runes[:room-1]), " "))
			return
		}
		cut := room
		for i := room; i > room/2; i-- {
			if runes[i] == ' ' {
				cut = i
				break
			}
		}
		t.add("%s%s", indent, strings.TrimRight(string(runes[:cut]), " "))
		text = strings.TrimLeft(string(runes[cut:]), " ")
	}
}

// violations are told in so many lines: with as much of their reasons as there is room for, and if there is none, as many
// of them as fit.
func (t *lines) violations(bad []invariant.Verdict, room int) {
	if len(bad) == 0 {
		return
	}
	for most := reasons; ; most-- {
		told := &lines{color: t.color}
		told.add("")
		for i, v := range bad {
			if most == 0 && len(told.all) == room-1 && i < len(bad)-1 {
				told.wrap("  ", "and "+enumerated(bad[i:]), 1)
				break
			}
			told.violation(v, most)
		}
		if len(told.all) <= room || most == 0 {
			t.all = append(t.all, told.all...)
			return
		}
	}
}

func (t *lines) violation(v invariant.Verdict, most int) {
	id := messages.Line(v.ID, 30)
	head := fmt.Sprintf("%-4s %s%s", id, messages.Line(lower(v.Title), 40), where(v))
	if runes := []rune(head); len(runes) > columns-2 {
		head = string(runes[:columns-3]) + "…"
	}
	t.add("  %s%s", t.paint(head[:len(id)], colours[invariant.Violated]), head[len(id):])
	if most > 0 {
		t.wrap("       ", v.Why, most)
	}
	if most == reasons && v.Before != "" {
		t.wrap("       ", v.Before, most)
	}
}

// enumerated is the ids of some verdicts.
func enumerated(of []invariant.Verdict) string {
	ids := make([]string, len(of))
	for i, v := range of {
		ids[i] = messages.Line(v.ID, 40)
	}
	return strings.Join(ids, ", ")
}

// latencies are three lines, if there was load. That calls to servers which are broken fail is no violation, and is not to look like one.
func (t *lines) latencies(l *load.Latencies) {
	said := false
	for _, health := range load.Healths {
		var parts []string
		calls, failed := 0, 0
		for _, w := range load.Windows {
			c := l.Group(health, w)
			if c == nil {
				continue
			}
			s := c.Summary()
			calls, failed = calls+s.Calls, failed+s.Failed()
			if s.Recorded > 0 {
				parts = append(parts, string(w)+" "+short(s.P99))
			}
		}
		if calls == 0 {
			continue
		}
		if !said {
			t.add("")
			t.add("Calls to the servers that the day does not break, and to those that it does:")
			said = true
		}
		text := fmt.Sprintf("%s of %s failed", thousands(failed), count(calls, "call"))
		if len(parts) > 0 {
			text += "; p99 " + strings.Join(parts, ", ")
		}
		t.wrap(fmt.Sprintf("%-7s  ", health), text, 1)
	}
}

// short is a latency with three digits.
func short(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return rounded(d)
}
