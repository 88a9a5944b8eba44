package actors

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/actors/opening"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Each kind of news is told, whichever comes first on a connection.
func TestWhateverComesFirstIsTold(t *testing.T) {
	for kind, say := range map[messages.EventKind]func(*changeNotifier){
		messages.EventResources:       (*changeNotifier).noteResources,
		messages.EventPrompts:         (*changeNotifier).notePrompts,
		messages.EventResourceUpdated: func(n *changeNotifier) { n.noteUpdated("x:///1", true) },
	} {
		hub := NewHub()
		watcher := hub.Watch(10)
		say(&changeNotifier{hub: hub, name: "a"})
		watcher.Close()
		var got []messages.Event
		for e := range watcher.Events(t.Context()) {
			got = append(got, e)
		}
		if len(got) != 1 || got[0].Kind != kind || got[0].Server != "a" || (got[0].URI == "x:///1") != (kind == messages.EventResourceUpdated) {
			t.Errorf("%s: got %+v", kind, got)
		}
	}
}

// An entry of the history is dropped only if it says nothing new: the same words of another connection, or in another phase, are.
func TestTheSameWordsOfAnotherConnectionAreKept(t *testing.T) {
	var h History
	for _, e := range []Entry{
		{Epoch: 1, Phase: messages.Pending, Text: "x"}, {Epoch: 1, Phase: messages.Pending, Text: "x"}, {Epoch: 2, Phase: messages.Pending, Text: "x"},
		{Epoch: 2, Phase: messages.Failed, Text: "x"}, {Epoch: 2, Phase: messages.Failed, Text: "y"},
	} {
		h.Add(e)
	}
	if got := h.Entries(); len(got) != 4 {
		t.Errorf("%+v", got)
	}
}

// Of the timers of a burst one runs, the last.
func TestABurstHasOneTimer(t *testing.T) {
	s := &Server{cfg: ServerConfig{Common: &Common{Timing: Timing{Quiet: time.Hour, MaxWait: 2 * time.Hour}}}}
	s.scheduleRelist(lifecycle.Coalesce{Epoch: 1})
	first := s.relist
	s.scheduleRelist(lifecycle.Coalesce{Epoch: 1})
	if first == s.relist || first.Stop() {
		t.Error("the timer that was replaced still runs")
	}
	if !s.relist.Stop() {
		t.Error("no timer runs")
	}
}

// Only the whole list of a lazy server is kept for later lives: not one that stands because the newest could not be had.
func TestOnlyAListThatWasGivenIsRemembered(t *testing.T) {
	for what, c := range map[string]struct {
		connect  messages.Connect
		unlisted string
		want     int
	}{"lazy": {messages.Lazy, "", 1}, "eager": {"", "", 0}, "unlisted": {messages.Lazy, "no list today", 0}} {
		kept := 0
		s := &Server{spec: &messages.Spec{Connect: c.connect}, list: &session.ToolList{}, unlisted: c.unlisted, cfg: ServerConfig{Common: &Common{
			Remember: func(_ string, _ *messages.Spec, list *session.ToolList) {
				if kept++; list == nil {
					t.Errorf("%s: no list", what)
				}
			}}}}
		s.rememberTools()
		if kept != c.want {
			t.Errorf("%s: remembered %d times", what, kept)
		}
	}
}

// A step whose bound passed is told with what had not happened; what failed for another reason says so itself.
func TestOnlyABoundThatPassedIsExplained(t *testing.T) {
	passed, pass := context.WithCancelCause(t.Context())
	pass(context.DeadlineExceeded)
	closed, end := context.WithCancelCause(t.Context())
	end(nil)
	timeout := &messages.Error{Class: messages.ClassTimeout, Text: "a timeout of below"}
	canceled := &messages.Error{Class: messages.ClassCanceled, Text: "its context ended"}
	refused := &messages.Error{Class: messages.ClassNetwork, Text: "refused"}
	for what, c := range map[string]struct {
		bound context.Context
		step  string
		err   error
		want  string
	}{
		"a dial":                  {passed, "dial", timeout, "the connection could not be opened within 30s"},
		"a handshake":             {passed, "handshake", canceled, "no answer to initialize within 30s"},
		"a list":                  {passed, "list", timeout, "no answer to tools/list within 30s"},
		"another step":            {passed, "relist", timeout, ""},
		"another error":           {passed, "dial", refused, ""},
		"a bound that was lifted": {closed, "dial", canceled, ""},
		"a bound that holds":      {t.Context(), "dial", timeout, ""},
	} {
		a := &attempt{spec: &messages.Spec{Command: "a"}, limits: opening.Limits{Silence: 30 * time.Second}}
		err := a.explainTimeout(c.bound, c.step, c.err)
		if c.want == "" {
			if err != c.err {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		var e *messages.Error
		if !errors.As(err, &e) || e.Text != c.want || e.Class != messages.ClassTimeout || !errors.Is(err, c.err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
