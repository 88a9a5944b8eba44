package lifecycle

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestMatrix states what follows from every event in every phase. Its rows are all reachable states, those that behave
// alike together; its columns are the whole alphabet. testdata/matrix.txt is the reviewed copy.
//
// What is not acted on must have a reason in the table below, and what has a reason must not be acted on: the table
// says a second time, in other words, when the machine is to keep still.
func TestMatrix(t *testing.T) {
	rows := map[string]*row{}
	var order []*row
	reach(func(s reached) {
		name := place(s.State) + flavour(s.State)
		r := rows[name]
		if r == nil {
			r = &row{name: name, base: place(s.State), example: s.history, cells: map[string]*cell{}}
			rows[name], order = r, append(order, r)
		}
		for _, line := range alphabet {
			r.add(t, s.State, line)
		}
	})
	slices.SortStableFunc(order, func(a, b *row) int { return strings.Compare(a.name, b.name) })
	b := new(strings.Builder)
	b.WriteString(matrixHead)
	for _, r := range order {
		fmt.Fprintf(b, "\n== %s\ne.g. %s\n", r.name,
			strings.ReplaceAll(strings.Join(r.example, "; "), fmt.Sprintf(" epoch=%d", now), ""))
		lines := r.lines()
		if base := rows[r.base]; base != nil && base != r {
			same := base.lines()
			lines = slices.DeleteFunc(lines, func(line string) bool { return slices.Contains(same, line) })
			lines = slices.Insert(lines, 0, "    as in "+base.name+", but for")
		}
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	const file = "testdata/matrix.txt"
	golden, err := os.ReadFile(file)
	if err != nil && !*update {
		t.Fatal(err)
	}
	compare(t, file, strings.ReplaceAll(string(golden), "\r\n", "\n"), b.String())
}

const matrixHead = `# Every phase against every event. Written by TestMatrix (-update), read by people.
#
# A row is all reachable states that behave alike, with the shortest history of one of them. An event leads to the state
# behind the arrow and has the effects behind the colon; "|" stands between the effects of different states of the row,
# mostly without and with tools that the registry knows. A fact without a mark is of the current epoch; "every stale
# fact" is each of them with another.
`

// row is the outcome of every event for the states that behave alike.
type row struct {
	name    string
	base    string // the row without the flavour
	example []string
	cells   map[string]*cell
}

// cell is the outcome of one event in all states of a row.
type cell struct {
	reason  string // why it is ignored, "" if it is not
	to      string
	effects []string // distinct lists of effects
}

// add performs an event in a state of the row and merges its outcome.
func (r *row) add(t *testing.T, s State, line string) {
	t.Helper()
	e := letter(s, line)
	after, effects := Step(s, e)
	reason, may := why(s, e)
	still := unchanged(s, after) && len(effects) == 0
	switch {
	case still && reason == "":
		t.Errorf("%s: %s is ignored, and no reason is stated", writeState(s), line)
	case !still && reason != "" && !may:
		t.Errorf("%s: %s is to be ignored, because %s; it led to %s", writeState(s), line, reason, writeState(after))
	case !still:
		reason = ""
	}
	var done []string
	for _, effect := range effects {
		done = append(done, brief(effect))
	}
	c := r.cells[line]
	if c == nil {
		c = &cell{reason: reason, to: place(after)}
		r.cells[line] = c
	}
	if may && c.reason != reason { // it acts in some states of the row: that is what the row tells
		c.reason = ""
	} else if c.reason != reason {
		t.Errorf("%s: %s: %q and %q: states of this row do not behave alike", r.name, line, c.reason, reason)
	}
	if c.to != place(after) {
		t.Errorf("%s: %s leads to %s and to %s: states of this row do not behave alike", r.name, line, c.to, place(after))
	}
	if list := strings.Join(done, ", "); !slices.Contains(c.effects, list) {
		c.effects = append(c.effects, list)
	}
}

// brief is an effect without its numbers and without the cause, which are the event's.
func brief(effect Effect) string {
	return strings.Join(slices.DeleteFunc(strings.Fields(write(effect)), func(word string) bool {
		key, _, _ := strings.Cut(word, "=")
		return key == "epoch" || key == "rev" || key == "cause"
	}), " ")
}

// lines are the row as text: what is acted on, then what is ignored, with the reasons.
func (r *row) lines() []string {
	type group struct {
		outcome string
		ignored bool
		labels  []string
	}
	var groups []*group
	variants, ignoredAlike := map[string]int{}, map[string]int{}
	for _, line := range alphabet {
		variants[kindOfLine(line)]++
		ignoredAlike[kindOfLine(line)+r.cells[line].reason]++
	}
	for _, line := range alphabet {
		c, kind := r.cells[line], kindOfLine(line)
		outcome, ignored := "because "+c.reason, c.reason != ""
		name := strings.ReplaceAll(line, fmt.Sprintf(" epoch=%d", now), "")
		switch {
		case ignored && strings.Contains(line, fmt.Sprintf("epoch=%d", stale)):
			name = "every stale fact"
		case ignored && ignoredAlike[kind+c.reason] == variants[kind]:
			name = kind
		case ignored:
		case kind == "Granted" && line != "Granted epoch=6":
			name = "Granted (not new)"
		case kind == "Granted":
			name = kind
		}
		if !ignored {
			slices.Sort(c.effects)
			if len(c.effects) > 1 && c.effects[0] == "" {
				c.effects[0] = "nothing"
			}
			outcome = strings.TrimSuffix(c.to+": "+strings.Join(c.effects, " | "), ": ")
		}
		i := slices.IndexFunc(groups, func(g *group) bool {
			return g.outcome == outcome && g.ignored == ignored && (ignored || kindOfLine(g.labels[0]) == kindOfLine(name))
		})
		if i < 0 {
			i, groups = len(groups), append(groups, &group{outcome: outcome, ignored: ignored})
		}
		if !slices.Contains(groups[i].labels, name) {
			groups[i].labels = append(groups[i].labels, name)
		}
	}
	slices.SortStableFunc(groups, func(a, b *group) int {
		switch {
		case a.ignored == b.ignored:
			return 0
		case a.ignored:
			return 1
		}
		return -1
	})
	var lines []string
	for _, g := range groups {
		if g.ignored {
			lines = append(lines, fmt.Sprintf("    ignored %s: %s", g.outcome, strings.Join(g.labels, ", ")))
		} else {
			lines = append(lines, fmt.Sprintf("    %-40s → %s", strings.Join(g.labels, ", "), g.outcome))
		}
	}
	return lines
}

// kindOfLine is the kind of an event in the notation; stale facts are a kind of their own.
func kindOfLine(line string) string {
	kind := strings.Fields(line)[0]
	if kind != "Granted" && strings.Contains(line, fmt.Sprintf("epoch=%d", stale)) {
		return "stale " + kind
	}
	return kind
}

// place names a state by what it does next.
func place(s State) string {
	if s.Phase == "" {
		return "not begun"
	}
	words := []string{strings.TrimSpace(string(s.Phase) + " " + string(s.Step))}
	also := func(when bool, word string) {
		if when {
			words = append(words, word)
		}
	}
	switch {
	case s.Removing:
		words[0] = "removed"
	case s.Warm():
		words[0] = "disabled warm"
	case s.Phase == messages.Disabled && s.Conn == None:
		words[0] = "disabled cold"
	case s.Step == messages.Listing && s.Conn == Opening:
		words[0] = "pending listing for the first time"
	case s.Step == messages.Listing:
		words[0] = "pending listing after Enable"
	}
	also(s.Conn == Closing && s.Step != messages.Closing, "not released")
	also(s.Conn == None && s.Phase == messages.Failed && s.Retry == "", "not scheduled")
	also(s.Conn == None && s.Phase == messages.Failed && s.Retry != "", map[messages.Retry]string{
		messages.RetryAt: "retry at a time", messages.RetryParked: "parked", messages.RetryNever: "no retry",
	}[s.Retry])
	also(s.Step == messages.Restarting && s.Conn == None && s.Retry == "", "not scheduled")
	also(s.Step == messages.Restarting && s.Conn == None && s.Retry != "", "retry at a time")
	also(s.Listing && s.Phase != messages.Pending, "listing")
	also(s.RelistAfter, "again")
	also(s.Dirty, "dirty")
	also(s.Phase == messages.Connected && s.Dirty && !s.Listing && s.ListFailures > 0, "after a failed list")
	return strings.Join(words, ", ")
}

// flavour names what else decides, where it decides.
func flavour(s State) string {
	switch {
	case s.Removing:
	case s.Blocked != nil && s.Phase != messages.Pending:
		return ", blocked by " + string(s.Blocked.Class)
	case s.Phase == messages.Disabled && s.Conn != Open && s.Lazy && s.EverConnected:
		return ", lazy"
	case s.Phase == messages.Connected && !s.Listing && s.Lazy:
		return ", lazy"
	}
	return ""
}

// why is the reason for which an event changes nothing, "" if it must change something. may: it may also change
// something, if it says more than is known.
func why(s State, e Event) (reason string, may bool) {
	epoch, isFact := number(e, "Epoch")
	_, isGrant := e.(Granted)
	ending := s.Conn == None || s.Conn == Closing
	first := func(cases ...any) string { // pairs of condition and reason
		for i := 0; i < len(cases); i += 2 {
			if cases[i].(bool) {
				return cases[i+1].(string)
			}
		}
		return ""
	}
	if isFact && !isGrant && epoch != s.Epoch {
		return "it belongs to another attempt", false
	}
	if s.Phase == "" {
		switch e.(type) {
		case Init, Remove, Granted:
			return "", false
		}
		return "nothing counts before Init", false
	}
	if s.Removing {
		_, isClosed := e.(Closed)
		return first(!isGrant && !(isClosed && s.Conn != None), "only the release of what it holds counts"), false
	}
	switch e := e.(type) {
	case Init:
		return "it has begun", false
	case Enable:
		return first(s.Wanted, "it is wanted already"), false
	case Disable:
		return first(!s.Wanted && !(e.Cold && s.Conn == Open), "it is disabled already"), false
	case Reconnect:
		return first(!s.Wanted, "a disabled server stays disabled", s.Blocked != nil, "its spec cannot start",
				s.Conn == Opening, "an attempt is on its way",
				s.Step == messages.Closing && s.DueUrgency == Person, "its start waits for the release already"),
			s.Step == messages.Closing
	case Wake:
		return first(s.Step != messages.Idle, "it does not rest"), false
	case Refresh:
		return first(s.Phase != messages.Connected, "it is not connected", s.Refreshing && s.RelistAfter,
			"one more list follows already"), false
	case Respec:
		return "it leads to where the server is", true
	case Scheduled:
		return first(!s.StartRequested, "no start is asked for", s.Step == messages.Queued, "a newer Ask has overtaken the Report",
			s.Retry == e.Retry && s.NextAt.Equal(e.At), "it is known"), s.Step != messages.Queued && s.StartRequested
	case Dialed:
		return first(s.Step != messages.Dialing, "nothing is being dialled"), false
	case Installing:
		return first(s.Step == messages.Installing, "it is known", s.Step != messages.Handshaking, "no handshake is under way"), false
	case Greeted:
		return first(s.Step != messages.Handshaking && s.Step != messages.Installing, "no handshake is under way"), false
	case Listed:
		return first(!s.Listing, "no list is in flight"), false
	case ListFailed:
		return first(!s.Listing && s.Conn != Opening, "no list is in flight"), false
	case Failed:
		return first(s.Conn != Opening, "no attempt is under way"), false
	case Lost:
		return first(ending, "the connection has ended"), false
	case Closed:
		return first(s.Conn == None, "everything is released"), false
	case Unauthorized:
		return first(ending, "the connection has ended", s.Phase == messages.Disabled, "nobody uses a disabled server"), false
	case ToolsChanged:
		return first(ending, "the connection has ended",
			s.Dirty && (s.Phase != messages.Connected || s.Listing), "it is marked already",
			s.Dirty && s.ListFailures > 0, "the next list is due already"), false
	case RelistDue:
		return first(s.Phase != messages.Connected, "it is not connected", s.Listing, "a list is in flight",
			!s.Dirty, "nothing has changed"), false
	case IdleOut:
		return first(s.Phase != messages.Connected, "it is not connected", s.Listing, "a list is in flight",
			!s.Lazy, "it is not lazy", s.Dirty, "the next list is due already"), false
	}
	return "", false
}
