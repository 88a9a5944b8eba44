package up

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// toldOf applies statuses of one server in turn and returns the lines that are shown for them.
func toldOf(b *board, all ...messages.Status) []string {
	var received []string
	for _, st := range all {
		if h, ok := b.applyEvent(messages.Event{Kind: messages.EventPhase, Time: noon, Server: st.Name, Status: &st}); ok {
			received = append(received, h.text)
		}
	}
	return received
}

// TestBoardTellsAFailureOnce checks that a failure makes one line with what follows, although it comes as two events: the
// failure, and the decision about it. A repeated failure does not repeat its reason.
func TestBoardTellsAFailureOnce(t *testing.T) {
	fail := func(attempt int, text string, at time.Duration) []messages.Status {
		return []messages.Status{
			newStatus("s", messages.Pending, 0, func(st *messages.Status) { st.Step = messages.Dialing }),
			newStatus("s", messages.Failed, 0, func(st *messages.Status) { st.Error = text }),
			newStatus("s", messages.Failed, at, func(st *messages.Status) { st.Error, st.Attempts = text, attempt }),
		}
	}
	b := newBoard()
	var all []messages.Status
	for i, text := range []string{"refused", "refused", "refused", "no route"} {
		all = append(all, fail(i+1, text, time.Duration(i+1)*time.Second)...)
	}
	parked := fail(5, "no route", 5*time.Minute)
	parked[2].Retry = messages.RetryParked
	got := strings.Join(toldOf(b, append(all, parked...)...), "\n")
	want := `failed: refused; next attempt at 12:00:01
failed again, 2 in a row, for the same reason; next attempt at 12:00:02
failed again, 3 in a row, for the same reason; next attempt at 12:00:03
failed: no route; next attempt at 12:00:04
failed again, 5 in a row, for the same reason; parked after 5 failures in a row, probe at 12:05:00`
	if got != want {
		t.Errorf("told:\n%s\nnot:\n%s", got, want)
	}
	if got := b.servers["s"].lastError; got != "no route" {
		t.Errorf("the last error is %q", got)
	}
}

// TestBoardTellsOfALife checks the lines of a server from its first attempt to its removal.
func TestBoardTellsOfALife(t *testing.T) {
	b := newBoard()
	got := strings.Join(toldOf(b,
		newStatus("s", messages.Pending, 0, func(st *messages.Status) { st.Step = messages.Queued }),
		newStatus("s", messages.Pending, 0, func(st *messages.Status) { st.Step = messages.Listing }),
		newStatus("s", messages.Connected, 0, func(st *messages.Status) {
			st.Tools, st.ServerInfo = tools(2), &messages.ServerInfo{Name: "evil\x1b[2J", Version: "1"}
			st.Quarantined = make([]messages.QuarantinedTool, 3)
		}),
		newStatus("s", messages.Pending, 0, func(st *messages.Status) { st.Step, st.Error = messages.Restarting, "it ended" }),
		newStatus("s", messages.Pending, time.Second, func(st *messages.Status) {
			st.Step, st.Error = messages.Restarting, "it ended"
		}),
		newStatus("s", messages.Connected, 0, func(st *messages.Status) { st.Tools = tools(1) }),
		newStatus("s", messages.Disabled, 0, func(st *messages.Status) { st.Warm = true }),
		newStatus("s", messages.Connected, 0, func(st *messages.Status) { st.Tools = tools(1) }),
		newStatus("s", messages.Disabled, 0, nil),
		newStatus("s", messages.NeedsAuth, 0, func(st *messages.Status) { st.Error = "401" }),
		newStatus("s", messages.Failed, 0, func(st *messages.Status) {
			st.Error, st.Retry = "no such command", messages.RetryNever
		}),
	), "\n")
	want := `connected: 2 tools, 3 more quarantined (evil�[2J 1)
lost: it ended; next attempt at 12:00:01
connected: 1 tool
disabled; its connection is kept
enabled again: 1 tool
disabled
needs credentials (mcpvisor login s): 401
failed: no such command; not tried again by itself`
	if got != want {
		t.Errorf("told:\n%s\nnot:\n%s", got, want)
	}
	h, ok := b.applyEvent(messages.Event{Kind: messages.EventRemoved, Server: "s"})
	if !ok || h.text != "removed" || len(b.servers) != 0 {
		t.Errorf("a removed server: %v %v, %d left", h, ok, len(b.servers))
	}
}

// TestBoardCountsCalls checks that calls are counted from events, or by the run that makes them, and never twice. Only an
// unknown outcome makes a line.
func TestBoardCountsCalls(t *testing.T) {
	for _, own := range []bool{false, true} {
		b := newBoard()
		b.countsOwnCalls = own
		toldOf(b, newStatus("s", messages.Connected, 0, nil))
		for _, o := range []messages.Outcome{
			messages.OutcomeResult, messages.OutcomeToolError, messages.OutcomeRejected, messages.OutcomeNotSent,
			messages.OutcomeUnknown,
		} {
			_, received := b.applyEvent(messages.Event{Kind: messages.EventCallEnded, Server: "s", Tool: "t", Outcome: o})
			if received != (o == messages.OutcomeUnknown) {
				t.Errorf("outcome %s: told %v", o, received)
			}
			b.applyEvent(messages.Event{Kind: messages.EventCallStarted, Server: "s", Tool: "t"})
			if own {
				b.countCall("s", o)
			}
			b.countCall("nobody", o)
		}
		want := callCounts{1, 1, 1, 1, 1}
		if got := b.totalCalls(); got != want {
			t.Errorf("own=%v: counted %v, not %v", own, got, want)
		}
		words := "1 result, 1 tool error, 1 rejection, 1 not sent, 1 outcome unknown"
		if got := b.totalCalls().String(); got != words {
			t.Errorf("%q, not %q", got, words)
		}
	}
}

// TestBoardKeepsTheNewest checks that old lines are dropped.
func TestBoardKeepsTheNewest(t *testing.T) {
	b := newBoard()
	for i := range 3 * recentKept {
		b.addEvent(eventLine{at: noon.Add(time.Duration(i))})
	}
	first, last := b.recent[0].at, b.recent[len(b.recent)-1].at
	if len(b.recent) != recentKept || last != noon.Add(3*recentKept-1) || first != noon.Add(2*recentKept) {
		t.Errorf("%d kept, from %v to %v", len(b.recent), first, last)
	}
}

// TestBoardTellsOfTools checks that a change of the number of tools makes a line, and the first count of a connection does not.
func TestBoardTellsOfTools(t *testing.T) {
	b := newBoard()
	if _, received := b.setToolCount(noon, "s", 3); received {
		t.Error("told of a server that nobody knows")
	}
	toldOf(b, newStatus("s", messages.Pending, 0, nil))
	if _, received := b.setToolCount(noon, "s", 3); received {
		t.Error("told before the server is connected")
	}
	toldOf(b, newStatus("s", messages.Connected, 0, func(st *messages.Status) { st.Tools = tools(3) }))
	if _, received := b.setToolCount(noon, "s", 3); received {
		t.Error("told although nothing has changed")
	}
	if h, received := b.setToolCount(noon, "s", 1); !received || h.text != "offers 1 tool now, 3 before" {
		t.Errorf("told %v: %q", received, h.text)
	}
	if _, received := b.setToolCount(noon, "s", 0); received || b.servers["s"].tools != 0 {
		t.Errorf("told %v that a server offers nothing, and counts %d", received, b.servers["s"].tools)
	}
}

// TestBoardAfterAGap checks that the board shows the current statuses after events were missed, and keeps its counts of calls.
func TestBoardAfterAGap(t *testing.T) {
	b := newBoard()
	toldOf(b, newStatus("gone", messages.Connected, 0, nil), newStatus("kept", messages.Pending, 0, nil))
	b.countCall("kept", messages.OutcomeResult)
	b.resyncStatuses([]messages.Status{newStatus("kept", messages.Connected, 0, nil), newStatus("new", messages.Failed, 0, nil)})
	if got := strings.Join(b.serverNames(), " "); got != "kept new" {
		t.Errorf("the servers are %s", got)
	}
	if r := b.servers["kept"]; r.status.Status != messages.Connected || r.calls.results != 1 {
		t.Errorf("kept is %+v", r)
	}
}
