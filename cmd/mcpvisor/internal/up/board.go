package up

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// board holds what up shows, computed from the events of a manager. It has no clock and does no I/O, so that tests can play
// events. It is not safe for concurrent use: the display that owns it has the lock.
type board struct {
	servers map[string]*row
	// recent holds the last events, the oldest first, at most recentKept.
	recent []eventLine
	// countsOwnCalls is true if the run counts the calls that it makes: the demo knows of calls that were refused before they
	// became an event.
	countsOwnCalls bool
	// silent suppresses lines about events while the servers are ended on purpose.
	silent bool
}

// row is one server of the board.
type row struct {
	// status is the newest one, without the tools; tools is their number.
	status messages.Status
	tools  int
	// lastError stays after the server has recovered, and says why a connected server was restarted.
	lastError string
	// reportedError is the error in the last line about this server; the same error is not repeated in full.
	reportedError string
	calls         callCounts
}

// callCounts counts calls by their outcome.
type callCounts struct {
	results, toolErrors, rejected, notSent, unknown int
}

// addOutcome counts one call.
func (t *callCounts) addOutcome(o messages.Outcome) {
	switch o {
	case messages.OutcomeResult:
		t.results++
	case messages.OutcomeToolError:
		t.toolErrors++
	case messages.OutcomeRejected:
		t.rejected++
	case messages.OutcomeNotSent:
		t.notSent++
	case messages.OutcomeUnknown:
		t.unknown++
	}
}

// addCounts adds the counts of another server.
func (t *callCounts) addCounts(o callCounts) {
	t.results += o.results
	t.toolErrors += o.toolErrors
	t.rejected += o.rejected
	t.notSent += o.notSent
	t.unknown += o.unknown
}

// total returns the number of all calls.
func (t callCounts) total() int { return t.results + t.toolErrors + t.rejected + t.notSent + t.unknown }

// String lists the counts: "212 results, 3 not sent, 0 outcome unknown". Calls that were not sent or are unknown are always
// named, because 0 of them is good to know.
func (t callCounts) String() string {
	parts := []string{terminal.CountOf(t.results, "result")}
	for _, p := range []struct {
		n    int
		word string
	}{{t.toolErrors, "tool error"}, {t.rejected, "rejection"}} {
		if p.n > 0 {
			parts = append(parts, terminal.CountOf(p.n, p.word))
		}
	}
	parts = append(parts, fmt.Sprintf("%d not sent", t.notSent), fmt.Sprintf("%d outcome unknown", t.unknown))
	return strings.Join(parts, ", ")
}

// eventLine is one event in a sentence. server is empty for events about the run.
type eventLine struct {
	at     time.Time
	server string
	phase  messages.Phase
	text   string
}

// recentKept is more than a high terminal has lines.
const recentKept = 200

// newBoard returns an empty board.
func newBoard() *board { return &board{servers: map[string]*row{}} }

// serverNames returns the names of the servers, sorted.
func (b *board) serverNames() []string { return slices.Sorted(maps.Keys(b.servers)) }

// applyEvent updates the board by an event. notable says that the event is worth a line, which is h and was added to recent.
func (b *board) applyEvent(e messages.Event) (h eventLine, notable bool) {
	text, phase := "", messages.Phase("")
	switch e.Kind {
	case messages.EventPhase:
		if e.Status == nil {
			return eventLine{}, false
		}
		text, phase = b.applyPhase(*e.Status), e.Status.Status
		if status.IsUnapproved(*e.Status) {
			phase = messages.NeedsAuth // the colour of what waits for the person
		}
	case messages.EventRemoved:
		delete(b.servers, e.Server)
		text = "removed"
	case messages.EventCallEnded:
		if r := b.servers[e.Server]; r != nil && !b.countsOwnCalls {
			r.calls.addOutcome(e.Outcome)
		}
		if e.Outcome == messages.OutcomeUnknown {
			text = "a call of " + messages.Line(e.Tool, 60) + " ended with an unknown outcome: it may have run"
		}
	case messages.EventPins:
		if r := b.servers[e.Server]; r != nil {
			r.status.ChangedTools = e.Changed
			phase = r.status.Status
		}
		text = pinText(e)
	case messages.EventUnheard:
		text = "it asks too often: " + terminal.CountOf(int(e.Missed), "question") + " refused without being heard"
	case messages.EventGap:
		text = terminal.CountOf(int(e.Missed), "event") + " came too fast to be shown"
	case messages.EventTools, messages.EventCallStarted, messages.EventAuthRequired, messages.EventAuth,
		messages.EventResources, messages.EventPrompts, messages.EventResourceUpdated, messages.EventLog:
		// The display looks up the tools with the manager (recordEvent), and needs-auth is a phase as well.
	}
	if text == "" || b.silent {
		return eventLine{}, false
	}
	return b.addEvent(eventLine{e.Time, e.Server, phase, text}), true
}

// pinText returns the line about changed tools, or about tools that are as approved again.
func pinText(e messages.Event) string {
	if len(e.Changed) == 0 {
		return "its tools are as they were approved"
	}
	var names []string
	held := false
	for _, c := range e.Changed {
		names, held = append(names, c.Name), held || c.Held
	}
	text := terminal.CountOf(len(names), "tool") + " changed since approved: mcpvisor diff " + terminal.ShellWord(e.Server)
	if held {
		text = terminal.CountOf(len(names), "tool") + " changed since approved, and held back: mcpvisor diff " + terminal.ShellWord(e.Server)
	}
	return text + " (" + terminal.JoinNames(names) + ")"
}

// addEvent appends a line to recent and drops the oldest if there are too many.
func (b *board) addEvent(h eventLine) eventLine {
	if len(b.recent) >= recentKept {
		b.recent = append(b.recent[:0], b.recent[1:]...)
	}
	b.recent = append(b.recent, h)
	return h
}

// setStatus stores a status without making a line of it.
func (b *board) setStatus(st messages.Status) *row {
	r := b.servers[st.Name]
	if r == nil {
		r = &row{}
		b.servers[st.Name] = r
	}
	r.tools = len(st.Tools)
	st.Tools = nil // only their number is shown, and the list is long
	if r.status = st; st.Error != "" {
		r.lastError = st.Error
	}
	return r
}

// setToolCount stores how many tools a server offers now. A count of 0 makes no line: the catalog may learn of the end of a
// connection before the board does, and the phase event says that better.
func (b *board) setToolCount(at time.Time, server string, n int) (h eventLine, notable bool) {
	r := b.servers[server]
	if r == nil || r.tools == n || r.status.Status != messages.Connected {
		return eventLine{}, false
	}
	text := fmt.Sprintf("offers %s now, %d before", terminal.CountOf(n, "tool"), r.tools)
	if r.tools = n; b.silent || n == 0 {
		return eventLine{}, false
	}
	return b.addEvent(eventLine{at, server, r.status.Status, text}), true
}

// resyncStatuses replaces all statuses after events were missed. It makes no lines.
func (b *board) resyncStatuses(all []messages.Status) {
	there := map[string]bool{}
	for _, st := range all {
		there[st.Name] = true
		b.setStatus(st)
	}
	maps.DeleteFunc(b.servers, func(name string, _ *row) bool { return !there[name] })
}

// applyPhase stores a status and returns the line about the change; "" for the steps of an attempt, which only the table shows.
func (b *board) applyPhase(st messages.Status) string {
	before := messages.Status{Status: messages.Pending}
	if r := b.servers[st.Name]; r != nil {
		before = r.status
	}
	r := b.setStatus(st)
	switch st.Status {
	case messages.Connected:
		text := "connected: " + terminal.CountOf(r.tools, "tool")
		if before.Status == messages.Disabled && before.Warm {
			text = "enabled again: " + terminal.CountOf(r.tools, "tool")
		}
		if n := len(st.Quarantined); n > 0 {
			text += fmt.Sprintf(", %d more quarantined", n)
		}
		if i := st.ServerInfo; i != nil {
			text += " (" + strings.TrimSpace(messages.Line(i.Name, 60)+" "+messages.Line(i.Version, 30)) + ")"
		}
		return text
	case messages.Disabled:
		if st.Warm {
			return "disabled; its connection is kept"
		}
		return "disabled"
	case messages.NeedsAuth:
		text := "needs credentials"
		if st.Config == nil || st.Config.AuthKind() == messages.AuthOAuth {
			text += " (mcpvisor login " + terminal.ShellWord(st.Name) + ")" // the command stands in front, since the end of a line may be cut off
		}
		return text + ": " + messages.Line(st.Error, 300)
	case messages.Failed:
		// The restart policy decides a moment after the failure; the line waits for the status that has both.
		if st.Retry != "" && (before.Retry != st.Retry || !sameTime(before.NextAttempt, st.NextAttempt)) {
			word, _ := status.PhaseOf(st)
			return r.failureSentence(word, st)
		}
	case messages.Pending:
		if st.Step == messages.Restarting && st.NextAttempt != nil && !sameTime(before.NextAttempt, st.NextAttempt) {
			return r.failureSentence("lost", st)
		}
	}
	return ""
}

// failureSentence says why a server failed and what follows. The reason is left out if the line before gave the same one.
func (r *row) failureSentence(word string, st messages.Status) string {
	text := word + ": " + messages.Line(st.Error, 300)
	if st.Error == r.reportedError && r.status.Attempts > 1 {
		text = fmt.Sprintf("%s again, %d in a row, for the same reason", word, st.Attempts)
	}
	r.reportedError = st.Error
	return text + nextStepText(st)
}

// sameTime reports whether two optional times are equal or both missing.
func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

// nextStepText continues a sentence about a failure with the next attempt.
func nextStepText(st messages.Status) string {
	if st.Retry == messages.RetryNever {
		return "; not tried again by itself"
	}
	if st.NextAttempt == nil {
		return ""
	}
	at := " at " + st.NextAttempt.Local().Format("15:04:05")
	if st.Retry == messages.RetryParked {
		return fmt.Sprintf("; parked after %s in a row, probe%s", terminal.CountOf(st.Attempts, "failure"), at)
	}
	return "; next attempt" + at
}

// countCall counts a call that the run itself made; one of a server that is gone is dropped.
func (b *board) countCall(server string, o messages.Outcome) {
	if r := b.servers[server]; r != nil {
		r.calls.addOutcome(o)
	}
}

// totalCalls returns the counts of all servers together.
func (b *board) totalCalls() callCounts {
	var t callCounts
	for _, r := range b.servers {
		t.addCounts(r.calls)
	}
	return t
}

// phaseSummary counts the servers by phase: "9 servers: 5 connected, 1 failed; 27 tools".
func (b *board) phaseSummary() string {
	words := map[string]int{}
	tools := 0
	for _, r := range b.servers {
		word, _ := status.PhaseOf(r.status)
		words[word]++
		if r.status.Status == messages.Connected {
			tools += r.tools
		}
	}
	var parts []string
	for _, word := range []string{
		string(messages.Connected), string(messages.Pending), string(messages.Failed), string(messages.NeedsAuth), status.UnapprovedWord,
		string(messages.Disabled),
	} {
		if n := words[word]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, word))
		}
	}
	text := terminal.CountOf(len(b.servers), "server")
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return text + "; " + terminal.CountOf(tools, "tool")
}
