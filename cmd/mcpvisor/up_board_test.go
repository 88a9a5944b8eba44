package main

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// toldOf applies statuses of one server in turn and returns what is told.
func toldOf(b *board, all ...messages.Status) []string {
	var told []string
	for _, st := range all {
		if h, ok := b.apply(messages.Event{Kind: messages.EventPhase, Time: noon, Server: st.Name, Status: &st}); ok {
			told = append(told, h.text)
		}
	}
	return told
}

// A failure is told once, with what follows, although it comes as two events: the failure, and the decision about it.
// The same failure again is not spelled out again.
func TestBoardTellsAFailureOnce(t *testing.T) {
	fail := func(attempt int, text string, at time.Duration) []messages.Status {
		return []messages.Status{
			status("s", messages.Pending, 0, func(st *messages.Status) { st.Step = messages.Dialing }),
			status("s", messages.Failed, 0, func(st *messages.Status) { st.Error = text }),
			status("s", messages.Failed, at, func(st *messages.Status) { st.Error, st.Attempts = text, attempt }),
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

func TestBoardTellsOfALife(t *testing.T) {
	b := newBoard()
	got := strings.Join(toldOf(b,
		status("s", messages.Pending, 0, func(st *messages.Status) { st.Step = messages.Queued }),
		status("s", messages.Pending, 0, func(st *messages.Status) { st.Step = messages.Listing }),
		status("s", messages.Connected, 0, func(st *messages.Status) {
			st.Tools, st.ServerInfo = tools(2), &messages.ServerInfo{Name: "evil\x1b[2J", Version: "1"}
			st.Quarantined = make([]messages.QuarantinedTool, 3)
		}),
		status("s", messages.Pending, 0, func(st *messages.Status) { st.Step, st.Error = messages.Restarting, "it ended" }),
		status("s", messages.Pending, time.Second, func(st *messages.Status) {
			st.Step, st.Error = messages.Restarting, "it ended"
		}),
		status("s", messages.Connected, 0, func(st *messages.Status) { st.Tools = tools(1) }),
		status("s", messages.Disabled, 0, func(st *messages.Status) { st.Warm = true }),
		status("s", messages.Connected, 0, func(st *messages.Status) { st.Tools = tools(1) }),
		status("s", messages.Disabled, 0, nil),
		status("s", messages.NeedsAuth, 0, func(st *messages.Status) { st.Error = "401" }),
		status("s", messages.Failed, 0, func(st *messages.Status) {
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
	h, ok := b.apply(messages.Event{Kind: messages.EventRemoved, Server: "s"})
	if !ok || h.text != "removed" || len(b.servers) != 0 {
		t.Errorf("a removed server: %v %v, %d left", h, ok, len(b.servers))
	}
}

// Calls are counted from events, unless whoever makes them counts them: never twice. Only an unknown outcome is told.
func TestBoardCountsCalls(t *testing.T) {
	for _, own := range []bool{false, true} {
		b := newBoard()
		b.ownTally = own
		toldOf(b, status("s", messages.Connected, 0, nil))
		for _, o := range []messages.Outcome{
			messages.OutcomeResult, messages.OutcomeToolError, messages.OutcomeRejected, messages.OutcomeNotSent,
			messages.OutcomeUnknown,
		} {
			_, told := b.apply(messages.Event{Kind: messages.EventCallEnded, Server: "s", Tool: "t", Outcome: o})
			if told != (o == messages.OutcomeUnknown) {
				t.Errorf("outcome %s: told %v", o, told)
			}
			b.apply(messages.Event{Kind: messages.EventCallStarted, Server: "s", Tool: "t"})
			if own {
				b.called("s", o)
			}
			b.called("nobody", o)
		}
		want := tally{1, 1, 1, 1, 1}
		if got := b.calls(); got != want {
			t.Errorf("own=%v: counted %v, not %v", own, got, want)
		}
		words := "1 result, 1 tool error, 1 rejection, 1 not sent, 1 outcome unknown"
		if got := b.calls().String(); got != words {
			t.Errorf("%q, not %q", got, words)
		}
	}
}

func TestBoardKeepsTheNewest(t *testing.T) {
	b := newBoard()
	for i := range 3 * newsKept {
		b.tell(headline{at: noon.Add(time.Duration(i))})
	}
	first, last := b.news[0].at, b.news[len(b.news)-1].at
	if len(b.news) != newsKept || last != noon.Add(3*newsKept-1) || first != noon.Add(2*newsKept) {
		t.Errorf("%d kept, from %v to %v", len(b.news), first, last)
	}
}

// What a server offers is told when it changes, and not when a connection brings it.
func TestBoardTellsOfTools(t *testing.T) {
	b := newBoard()
	if _, told := b.offers(noon, "s", 3); told {
		t.Error("told of a server that nobody knows")
	}
	toldOf(b, status("s", messages.Pending, 0, nil))
	if _, told := b.offers(noon, "s", 3); told {
		t.Error("told before the server is connected")
	}
	toldOf(b, status("s", messages.Connected, 0, func(st *messages.Status) { st.Tools = tools(3) }))
	if _, told := b.offers(noon, "s", 3); told {
		t.Error("told although nothing has changed")
	}
	if h, told := b.offers(noon, "s", 1); !told || h.text != "offers 1 tool now, 3 before" {
		t.Errorf("told %v: %q", told, h.text)
	}
	if _, told := b.offers(noon, "s", 0); told || b.servers["s"].tools != 0 {
		t.Errorf("told %v that a server offers nothing, and counts %d", told, b.servers["s"].tools)
	}
}

// After a gap the board shows what is.
func TestBoardAfterAGap(t *testing.T) {
	b := newBoard()
	toldOf(b, status("gone", messages.Connected, 0, nil), status("kept", messages.Pending, 0, nil))
	b.called("kept", messages.OutcomeResult)
	b.resync([]messages.Status{status("kept", messages.Connected, 0, nil), status("new", messages.Failed, 0, nil)})
	if got := strings.Join(b.names(), " "); got != "kept new" {
		t.Errorf("the servers are %s", got)
	}
	if r := b.servers["kept"]; r.status.Status != messages.Connected || r.calls.results != 1 {
		t.Errorf("kept is %+v", r)
	}
}
