// Package errs makes the errors of package transports that every kind of connection needs: for a context that has ended, for a
// panic, and for a text of another program.
//
// # How it fits
//
// The kinds of transports and the packages that they share call it; it stands on package transports alone, because the packages
// beside it need its errors as well. It keeps no state. Errors that only one kind can have are made in its own package.
//
// Guarantees: a text is one line and bounded, and a context that ended by its deadline is told from one that was canceled, because
// the session says timeout to its caller only after the first.
//
// Not promised: that a text holds no secret. A panic's value or another program's words may hold one; a caller that knows secrets
// redacts the text before it gets here.
package errs

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// PanicError makes the error of a panic. Its text has the first 200 bytes of the value, its cause the stack for the logs.
func PanicError(v any) *transports.Error {
	return &transports.Error{
		Class: messages.ClassPanic,
		Text:  "panic: " + messages.Line(fmt.Sprint(v), 200),
		Err:   fmt.Errorf("panic: %v\n%s", v, debug.Stack()),
	}
}

// ContextError returns the error for a ctx that has ended while something was being done: ClassTimeout after a deadline, else
// ClassCanceled.
func ContextError(ctx context.Context, doing string) *transports.Error {
	if err := context.Cause(ctx); errors.Is(err, context.DeadlineExceeded) {
		return &transports.Error{Class: messages.ClassTimeout, Text: doing + " took too long", Err: err}
	}
	return &transports.Error{Class: messages.ClassCanceled, Text: doing + " was canceled", Err: ctx.Err()}
}

// ShortSentence returns s as one line of at most 200 bytes without a final full stop, to go on in a sentence.
func ShortSentence(s string) string { return strings.TrimRight(messages.Line(s, 200), ". ") }
