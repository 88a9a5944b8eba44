package messages_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

func ExampleError() {
	var err error = fmt.Errorf("creating the issue: %w", &messages.Error{
		Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassExited, Server: "github", Tool: "create_issue",
		Text: "the server restarts", Fix: "call again in a second",
	})
	fmt.Println(err)
	if errors.Is(err, messages.ErrNotSent) {
		fmt.Println("calling again cannot run it twice")
	}
	// Output:
	// creating the issue: server "github", tool "create_issue": the server restarts (not sent); call again in a second
	// calling again cannot run it twice
}

// TestAnErrorOfALongNameIsShort: the text has the beginning of a name of a megabyte, and the fields have all of it.
func TestAnErrorOfALongNameIsShort(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	e := &messages.Error{Op: "call", Server: long, Tool: long, Text: "no such server is configured"}
	if got := e.Error(); len(got) > 600 || !strings.Contains(got, "xxx…") || e.Server != long || e.Tool != long {
		t.Errorf("%d bytes: %.700s", len(got), got)
	}
	e.Server, e.Tool = long[:200], "a  b"
	if got, want := e.Error(), fmt.Sprintf("server %q, tool %q: %s", e.Server, e.Tool, e.Text); got != want {
		t.Errorf("a name of 200 bytes: %s", got)
	}
}

// sentinels holds every value that Error.Is knows, with the one field that makes it match.
var sentinels = []struct {
	target   error
	outcomes []messages.Outcome
	classes  []messages.Class
}{
	{target: messages.ErrNotSent, outcomes: []messages.Outcome{messages.OutcomeNotSent}},
	{target: messages.ErrOutcomeUnknown, outcomes: []messages.Outcome{messages.OutcomeUnknown}},
	{target: messages.ErrRejected, outcomes: []messages.Outcome{messages.OutcomeRejected}},
	{target: messages.ErrNeedsAuth, classes: []messages.Class{messages.ClassUnauthorized}},
	{target: messages.ErrDenied, classes: []messages.Class{messages.ClassDenied}},
	{target: messages.ErrInvalid, classes: []messages.Class{messages.ClassInvalid, messages.ClassConfig}},
	{target: context.DeadlineExceeded, classes: []messages.Class{messages.ClassTimeout}},
	{target: context.Canceled, classes: []messages.Class{messages.ClassCanceled}},
	{target: messages.ErrUnknownServer},
	{target: messages.ErrUnknownTool},
	{target: messages.ErrDisabled},
	{target: messages.ErrClosed},
	{target: io.EOF},
}

func TestErrorIs(t *testing.T) {
	outcomes := []messages.Outcome{
		"", messages.OutcomeResult, messages.OutcomeToolError, messages.OutcomeRejected, messages.OutcomeNotSent,
		messages.OutcomeUnknown,
	}
	contains := func(s any, part any) bool {
		switch s := s.(type) {
		case []messages.Outcome:
			for _, o := range s {
				if o == part {
					return true
				}
			}
		case []messages.Class:
			for _, c := range s {
				if c == part {
					return true
				}
			}
		}
		return false
	}
	for _, class := range messages.Classes {
		for _, outcome := range outcomes {
			err := fmt.Errorf("around: %w", &messages.Error{Class: class, Outcome: outcome, Text: "x"})
			for _, s := range sentinels {
				want := contains(s.outcomes, outcome) || contains(s.classes, class)
				if got := errors.Is(err, s.target); got != want {
					t.Errorf("class %q, outcome %q: errors.Is(err, %q) = %v", class, outcome, s.target, got)
				}
			}
		}
	}
}

func TestErrorWrapsItsCause(t *testing.T) {
	for _, cause := range []error{
		messages.ErrUnknownServer, messages.ErrUnknownTool, messages.ErrDisabled, messages.ErrClosed, io.ErrUnexpectedEOF,
	} {
		err := fmt.Errorf("around: %w", &messages.Error{Class: messages.ClassInvalid, Text: "x", Err: cause})
		if !errors.Is(err, cause) {
			t.Errorf("errors.Is does not find %q", cause)
		}
		var e *messages.Error
		if !errors.As(err, &e) || e.Err != cause {
			t.Errorf("errors.As does not find the error around %q", cause)
		}
	}
}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err  messages.Error
		want string
	}{
		{messages.Error{Text: "no such file"}, `no such file`},
		{messages.Error{Server: "a", Text: "exited with status 1"}, `server "a": exited with status 1`},
		{messages.Error{Tool: "t", Text: "unknown"}, `unknown`},
		{messages.Error{Server: "a", Tool: "t", Text: "died", Outcome: messages.OutcomeUnknown},
			`server "a", tool "t": died (outcome unknown: it may have run)`},
		{messages.Error{Server: "a", Text: "refused", Outcome: messages.OutcomeRejected, Fix: "log in"},
			`server "a": refused; log in`},
		{messages.Error{Server: "a\x1b[2J\n", Text: "said \x1b[31mno\u202e", Fix: "f\x00"},
			`server "a�[2J\n": said �[31mno�; f�`},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestClassOfAndOutcomeOf(t *testing.T) {
	inner := &messages.Error{Class: messages.ClassExited, Outcome: messages.OutcomeNotSent, Text: "x"}
	for _, c := range []struct {
		name    string
		err     error
		class   messages.Class
		outcome messages.Outcome
	}{
		{"nil", nil, messages.ClassNone, messages.OutcomeResult},
		{"ours", inner, messages.ClassExited, messages.OutcomeNotSent},
		{"ours, wrapped", fmt.Errorf("a: %w", inner), messages.ClassExited, messages.OutcomeNotSent},
		{"ours, joined", errors.Join(io.EOF, inner), messages.ClassExited, messages.OutcomeNotSent},
		{"ours without either, around one with both",
			&messages.Error{Op: "call", Text: "y", Err: inner}, messages.ClassExited, messages.OutcomeNotSent},
		{"ours without an outcome", &messages.Error{Class: messages.ClassConfig, Text: "x"},
			messages.ClassConfig, messages.OutcomeUnknown},
		{"ours without a class, around a deadline", &messages.Error{Text: "x", Err: context.DeadlineExceeded},
			messages.ClassTimeout, messages.OutcomeUnknown},
		{"deadline", context.DeadlineExceeded, messages.ClassTimeout, messages.OutcomeUnknown},
		{"canceled", fmt.Errorf("a: %w", context.Canceled), messages.ClassCanceled, messages.OutcomeUnknown},
		{"foreign", io.EOF, messages.ClassNetwork, messages.OutcomeUnknown},
	} {
		if got := messages.ClassOf(c.err); got != c.class {
			t.Errorf("%s: class %q, want %q", c.name, got, c.class)
		}
		if got := messages.OutcomeOf(c.err); got != c.outcome {
			t.Errorf("%s: outcome %q, want %q", c.name, got, c.outcome)
		}
	}
}
