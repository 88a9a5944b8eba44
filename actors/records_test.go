package actors

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// The entries of a server, its log and its history, travel to other programs and back without a loss.
func TestRecordsTravelWhole(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.Local)
	entry := Entry{Time: at, Epoch: 7, Phase: messages.Failed, Step: messages.Restarting, Text: "lost", Stderr: "oops"}
	if got := EntryFromProto(entry.ToProto()); !reflect.DeepEqual(got, entry) {
		t.Errorf("%+v became %+v", entry, got)
	}
	line := LogLine{Time: at, Epoch: 7, LogEntry: messages.LogEntry{Level: "info", Logger: "l", Data: json.RawMessage(`{"a":1}`)}}
	if got := LogLineFromProto(line.ToProto()); !reflect.DeepEqual(got, line) {
		t.Errorf("%+v became %+v", line, got)
	}
	if got := LogLineFromProto(&messages.LogLine{}); got.Level != "" || got.Epoch != 0 {
		t.Errorf("a line without a message became %+v", got)
	}
}

// A log message is kept without secrets, bounded, and as JSON whatever the secrets were cut out of.
func TestALogMessageIsFitToBeKept(t *testing.T) {
	hide := func(text string) string { return strings.ReplaceAll(text, "secret", "***") }
	for _, c := range []struct{ level, logger, data, want string }{
		{"info", "db", `{"a":1}`, `{"a":1}`},
		{"info", "db", `"the secret"`, `"the ***"`},
		{"info", "db", ``, ``},
		{strings.Repeat("x", 100), "the secret " + strings.Repeat("y", 300), `1`, `1`},
	} {
		e := logEntry(hide, c.level, c.logger, json.RawMessage(c.data))
		if string(e.Data) != c.want || len(e.Level) > 43 || len(e.Logger) > 203 || strings.Contains(e.Logger, "secret") {
			t.Errorf("%+v: %+v", c, e)
		}
	}
	broken := logEntry(func(text string) string { return strings.Trim(text, `"}`) }, "info", "", json.RawMessage(`{"a":"b"}`))
	if !json.Valid(broken.Data) || !strings.Contains(string(broken.Data), "a") {
		t.Errorf("what is no JSON any more is kept as %s", broken.Data)
	}
	long := logEntry(hide, "info", "", json.RawMessage(`"`+strings.Repeat("z", maxLogData)+`"`))
	if !json.Valid(long.Data) || len(long.Data) > maxLogData || !strings.Contains(string(long.Data), "(cut)") {
		t.Errorf("a long message is kept with %d bytes", len(long.Data))
	}
}

// The end of a text is kept in whole characters.
func TestTheEndOfAText(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{
		{"", 3, ""}, {"abc", 3, "abc"}, {"abcd", 3, "…bcd"}, {"äöü", 6, "äöü"}, {"äöü", 5, "…öü"}, {"äöü", 4, "…öü"}, {"äöü", 3, "…ü"},
	} {
		if got := lastBytes(c.text, c.n); got != c.want {
			t.Errorf("the last %d bytes of %q: %q, not %q", c.n, c.text, got, c.want)
		}
	}
}

// Why a tool is not there: its server is away, its configuration or a rule keeps it out, its definition is faulty, or no server has it.
func TestWhyAToolIsNotThere(t *testing.T) {
	connected := lifecycle.State{Wanted: true, Phase: messages.Connected, Conn: lifecycle.Open}
	for what, c := range map[string]struct {
		v       *View
		class   messages.Class
		wantErr error
		part    string
	}{
		"the server is away":       {&View{Spec: &messages.Spec{}, State: lifecycle.State{Wanted: true, Phase: messages.Pending, Step: messages.Dialing}}, messages.ClassNetwork, messages.ErrNotConnected, "not connected"},
		"it has no such tool":      {&View{Spec: &messages.Spec{}, State: connected}, messages.ClassInvalid, messages.ErrUnknownTool, "offers no such tool"},
		"its configuration has it": {&View{Spec: &messages.Spec{DeniedTools: []string{"t"}}, State: connected}, messages.ClassDenied, messages.ErrDenied, "of its configuration keeps this tool"},
		"a rule has it": {&View{Spec: &messages.Spec{}, State: connected, Tools: &session.ToolList{Quarantined: []messages.QuarantinedTool{
			{Name: "other", Reason: "x"}, {Name: "t", By: "rule", Reason: "it is forbidden here"}}}}, messages.ClassDenied, messages.ErrDenied, "it is forbidden here"},
		"its definition is faulty": {&View{Spec: &messages.Spec{}, State: connected, Tools: &session.ToolList{Quarantined: []messages.QuarantinedTool{
			{Name: "t", Reason: "it has no schema"}}}}, messages.ClassInvalid, messages.ErrUnknownTool, "quarantined: it has no schema"},
		"the definition of another is": {&View{Spec: &messages.Spec{}, State: connected, Tools: &session.ToolList{Quarantined: []messages.QuarantinedTool{
			{Name: "other", Reason: "it has no schema"}}}}, messages.ClassInvalid, messages.ErrUnknownTool, "offers no such tool"},
	} {
		c.v.Name = "s"
		cell := NewCell(c.v)
		calls := &Calls{Cell: func(string) *Cell { return cell }}
		e := new(messages.Error)
		errors.As(calls.unknownToolError("s", "t", c.v), &e)
		if e.Class != c.class || e.Outcome != messages.OutcomeNotSent || e.Server != "s" || e.Tool != "t" || !strings.Contains(e.Text, c.part) ||
			c.class != messages.ClassNetwork && !errors.Is(e, c.wantErr) {
			t.Errorf("%s: class %q, %v", what, e.Class, e)
		}
	}
	if e := (&Calls{Cell: func(string) *Cell { return nil }}).unknownToolError("s", "t", nil); !errors.Is(e, messages.ErrUnknownServer) {
		t.Errorf("no server has the name: %v", e)
	}
}

// Calls of one person's programs take turns of their own, and those of a caller without one by its name.
func TestByWhatCallsTakeTurns(t *testing.T) {
	anna := messages.WithCaller(t.Context(), "anna")
	for want, got := range map[string]string{"": turnsOf(t.Context()), "anna": turnsOf(anna), "editor": turnsOf(WithTurns(anna, "editor")), "shell": turnsOf(WithTurns(t.Context(), "shell"))} {
		if got != want {
			t.Errorf("turns of %q are %q", want, got)
		}
	}
}
