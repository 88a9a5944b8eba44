// Package refusal has the errors with which the parts of a manager refuse what is not done: it is closed, there is no such
// server, or the program's own function said no.
//
//	return refusal.ClosedError("call")
//
// How it fits: the parts of a manager call it where they refuse, so that one refusal has one text and one class, whichever part says
// it first. It keeps nothing.
//
// Guarantees: the outcome and the class of the program's own error, which may be about another call, never become those of this one.
package refusal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ClosedError returns the error of a command or call that came after Close: nothing was sent.
func ClosedError(op string) error {
	return &messages.Error{Op: op, Outcome: messages.OutcomeNotSent, Class: messages.ClassCanceled, Text: "the manager is closed",
		Err: messages.ErrClosed}
}

// NilContextError returns the error of a method that was given a nil context: nothing was done, so that it cannot panic half-way, with a
// slot or a lock that others need. server and tool are those that the caller named, or empty.
func NilContextError(op, server, tool string) error {
	return &messages.Error{Op: op, Server: server, Tool: tool, Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: "the context is nil",
		Fix: "pass the caller's context, or context.Background()"}
}

// UnknownServerError returns the error of a command that names a server which does not exist, or whose removal has begun. known are
// the servers that there are: the nearest one is named.
func UnknownServerError(op, name string, known ...string) error {
	e := &messages.Error{Op: op, Class: messages.ClassInvalid, Server: name, Text: "no such server is configured",
		Fix: "list the servers to see their names", Err: messages.ErrUnknownServer}
	// A server that is being removed is still among them.
	if near := messages.Nearest(name, known); near != "" && near != name {
		e.Nearest = near
		e.Fix = fmt.Sprintf("did you mean %q?", messages.Line(e.Nearest, 200))
	}
	return e
}

// ProgramError returns the error of a call that Config.Allow refused: always denied and not sent, with every error of Allow.
func ProgramError(cause error) error {
	cause = Readable(cause)
	e := &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Text: "the program refused it",
		Err: refusal{cause}}
	// A *messages.Error keeps its text and its fix, which were written for a reader.
	// Only an error of exactly this type was meant for this call; one inside of another error belongs to some other call.
	if own, ok := cause.(*messages.Error); ok && own.Text != "" { //nolint:errorlint // one that is wrapped is about something else
		e.Text, e.Fix, e.Challenge, e.RetryAfter = own.Text, own.Fix, own.Challenge, own.RetryAfter
		return e
	}
	if text := messages.Line(outcomeWords.Replace(cause.Error()), 400); text != "" {
		e.Text += ": " + text
	}
	return e
}

// Readable returns the program's own error. One whose method panics, such as a nil *messages.Error that was returned as an error, would
// panic again wherever it is compared: another error stands in its place.
func Readable(own error) (err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("it returned a %T that cannot be read, such as a nil pointer", own)
		}
	}()
	_ = own.Error()
	return own
}

// InterceptorError returns the error of a request that an interceptor ended with an error of its own: denied, with the outcome that the
// request had without it.
func InterceptorError(op, server, tool string, outcome messages.Outcome, cause error) error {
	e := ProgramError(cause).(*messages.Error) //nolint:errorlint // it is made there
	e.Op, e.Server, e.Tool, e.Outcome = op, server, tool, outcome
	return e
}

// outcomeWords removes what an *Error inside the cause says of another call's outcome: a reader would take it for this call's.
var outcomeWords = strings.NewReplacer(" (outcome unknown: it may have run)", "", " (not sent)", "")

// refusal wraps the error of Config.Allow. That error may be about another call, which Allow made in order to decide: its outcome
// and class must not become those of this call, so Is and As do not look through the wrapper for them.
type refusal struct{ error }

// Is finds the program's own errors, but no outcome and no class of another call.
func (r refusal) Is(target error) bool {
	// Every sentinel that states an outcome or a class is hidden; the program's own errors are found as usual.
	switch target {
	case messages.ErrNotSent, messages.ErrOutcomeUnknown, messages.ErrRejected, messages.ErrNeedsAuth, messages.ErrDenied, messages.ErrInvalid:
		return false
	}
	return errors.Is(r.error, target)
}

// As finds the program's own types, but no *Error, whose outcome would be another call's.
func (r refusal) As(target any) bool {
	if _, ok := target.(**messages.Error); ok {
		return false
	}
	return errors.As(r.error, target)
}
