package lifecycle

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestCheckFindsWhatItNames breaks one invariant at a time, because a check that never fails shows nothing.
func TestCheckFindsWhatItNames(t *testing.T) {
	const up = "Init enabled; Granted epoch=1; Dialed epoch=1; Greeted epoch=1; Listed epoch=1"
	refused := "Init enabled; Granted epoch=1; Failed epoch=1 cause=unauthorized; Closed epoch=1"
	for _, c := range []struct {
		name, history string
		spoil         func(*State)
		want          string
	}{
		{"connected without the wish", up, func(s *State) { s.Wanted = false }, "L1"},
		{"connected without a connection", up, func(s *State) { s.Conn = None }, "L1"},
		{"disabled and wanted", up + "; Disable", func(s *State) { s.Wanted = true }, "L2"},
		{"disabled without being unwanted", "Init", func(s *State) { s.Wanted = true }, "L2"},
		{"removed and wanted", "Init enabled", func(s *State) { s.Removing = true }, "L2"},
		{"a start beside a connection", up, func(s *State) { s.StartRequested = true }, "L3"},
		{"a start although credentials are needed", refused, func(s *State) { s.StartRequested = true }, "L4"},
		{"a time although credentials are needed", refused, func(s *State) { s.NextAt = time.Unix(1, 0) }, "L4"},
		{"a time of what is dialled", "Init enabled", func(s *State) { s.NextAt = time.Unix(1, 0) }, "L4"},
		{"a list without a connection", "Init enabled", func(s *State) { s.Listing = true }, "L5"},
		{"a change without a connection", "Init enabled", func(s *State) { s.Dirty = true }, "L5"},
		{"a second list without a first", up, func(s *State) { s.RelistAfter = true }, "L5"},
		{"somebody waits for no list", up, func(s *State) { s.Refreshing = true }, "L5"},
		{"a start that nobody wants", "Init", func(s *State) { s.StartRequested = true }, "L6"},
		{"more answers than requests", up, func(s *State) { s.Answered++ }, "L8"},
		{"settled without an answer", up, func(s *State) { s.Ticket++ }, "L8"},
		{"a step of what is connected", up, func(s *State) { s.Step = messages.Idle }, "L9"},
		{"pending without a step", "Init enabled", func(s *State) { s.Step = "" }, "L9"},
		{"queued and not asked for", "Init enabled", func(s *State) { s.StartRequested = false }, "L9"},
		{"dialing what is open", "Init enabled; Granted epoch=1", func(s *State) { s.Conn = Open }, "L9"},
		{"listing and no list", up + "; Disable; ToolsChanged epoch=1; Enable", func(s *State) { s.Listing = false }, "L9"},
		{"restarting and never reported", up + "; Lost epoch=1 cause=exited", func(s *State) { s.Conn = None }, "L9"},
		{"waiting for a release that has been", up + "; Reconnect", func(s *State) { s.Conn = None }, "L9"},
		{"resting and asked for", "Init enabled lazy cached", func(s *State) { s.StartRequested = true }, "L9"},
		{"failed for ever without a word", "Init enabled blocked=config", func(s *State) { s.Retry = "" }, "L9"},
		{"refused and open", refused, func(s *State) { s.Conn = Open }, "L9"},
		{"disabled and opening", "Init", func(s *State) { s.Conn = Opening }, "L9"},
		{"failed without a cause", "Init enabled blocked=config", func(s *State) { s.Cause = nil }, "L10"},
		{"connected with a cause", up, func(s *State) { s.Cause = &Cause{Class: messages.ClassExited} }, "L10"},
	} {
		s := replay(t, c.history)
		c.spoil(&s)
		if err := s.Check(); err == nil || !strings.HasPrefix(err.Error(), c.want+":") {
			t.Errorf("%s: want %s, got %v", c.name, c.want, err)
		}
	}
	if err := (State{}).Check(); err != nil {
		t.Errorf("before Init: %v", err)
	}
}
