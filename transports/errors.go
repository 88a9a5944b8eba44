package transports

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// panicError makes the error of a panic. Its text has the first 200 bytes of the value, its cause the stack for the logs.
func panicError(v any) *Error {
	return &Error{
		Class: messages.ClassPanic,
		Text:  "panic: " + messages.Line(fmt.Sprint(v), 200),
		Err:   fmt.Errorf("panic: %v\n%s", v, debug.Stack()),
	}
}

// contextError returns the error for a ctx that has ended while something was being done: ClassTimeout after a deadline, else
// ClassCanceled.
func contextError(ctx context.Context, doing string) *Error {
	if err := context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) {
		return &Error{Class: messages.ClassTimeout, Text: doing + " took too long", Err: err}
	}
	return &Error{Class: messages.ClassCanceled, Text: doing + " was canceled", Err: ctx.Err()}
}

// shortSentence returns s as one line of at most 200 bytes without a final full stop, to go on in a sentence.
func shortSentence(s string) string { return strings.TrimRight(messages.Line(s, 200), ". ") }
