package cli

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
)

// TestAFailureIsTakenApart checks how splitAdvice separates a failure from what to do.
func TestAFailureIsTakenApart(t *testing.T) {
	for text, want := range map[string][2]string{
		"no such thing": {"no such thing", ""},
		"unknown flag: --x; see: mcpvisor --help": {"unknown flag: --x", "see: mcpvisor --help"},
		"a; b": {"a; b", ""},
		"unknown command \"x\"; did you mean \"y\"?": {"unknown command \"x\"", "did you mean \"y\"?"},
		"a; write b; c": {"a", "write b; c"},
	} {
		if happened, todo := splitAdvice(text); [2]string{happened, todo} != want {
			t.Errorf("%q: %q, %q", text, happened, todo)
		}
	}
}

// TestAFailureSaysWhenToTryAgain checks that the JSON of a failure has the fields of its error, also of a wrapped one, and the time
// until the next attempt, if there is one.
func TestAFailureSaysWhenToTryAgain(t *testing.T) {
	e := &messages.Error{Server: "x", Class: messages.ClassExited, RetryAfter: time.Hour}
	if ms := failureOf(e).RetryAfterMs; ms != 3_600_000 {
		t.Errorf("%d ms", ms)
	}
	if ms := failureOf(&messages.Error{Server: "x"}).RetryAfterMs; ms != 0 {
		t.Errorf("%d ms, though nobody tries again", ms)
	}
	var err error = exit.WithCode(exit.Failed, fmt.Errorf("x: %w", e))
	if w := failureOf(err); w.Server != "x" || w.Class != messages.ClassExited || exit.CodeOf(err) != exit.Failed {
		t.Errorf("%+v", w)
	}
}
