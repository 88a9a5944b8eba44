// Package exit holds how a run of the command ends: the exit codes, the errors that carry one, and interrupts.
//
// How it fits: every command returns an error, made by [With] or [UsageError] if it is about the command line. [CodeOf] maps that
// error, or an error of the library, to the code of the process. [InterruptContext] makes the context of the run, which ends at
// Ctrl-C unless a question at the terminal has captured it (see [Interrupts]); [InterruptedError] then tells an interrupt from a
// timeout. The package prints nothing but the line after a second interrupt.
//
// Guarantees: a code never changes its meaning. A call's outcome decides before its class, because a script must not repeat what may
// have run. The first interrupt lets the command end its servers, the second ends the process.
//
// Not promised: a code of its own for each cause; the text and --json say more.
package exit

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The exit codes. They are part of the interface to scripts: the help of the program lists them, and a number never changes its
// meaning.
const (
	OK          = 0
	Failed      = 1   // a tool answered isError, or a server is not connected
	Usage       = 2   // usage or configuration
	NotSent     = 3   // the call never reached the server, so that repeating it is safe
	Unknown     = 4   // the call was sent and no answer came: it may have run
	Rejected    = 5   // the server answered with a JSON-RPC error
	Interrupted = 130 // 128 + SIGINT, as shells report it
)

// Error ends the program with a code, after one sentence on standard error. An empty text prints nothing, because the
// command has already printed everything.
type Error struct {
	Code int
	text string
}

func (e *Error) Error() string { return e.text }

// With returns the error that ends the program with a code, after one sentence on standard error.
func With(code int, text string) error { return &Error{code, text} }

// UsageError returns the error for a wrong command line, with Usage and a pointer to the command's help.
func UsageError(cmd *cobra.Command, format string, args ...any) error {
	return With(Usage, fmt.Sprintf(format, args...)+"; see: "+cmd.CommandPath()+" --help")
}

// codedError wraps an error to end the program with another code than CodeOf would choose for its kind.
type codedError struct {
	code int
	error
}

func (e *codedError) Unwrap() error { return e.error }

// WithCode wraps an error to end the program with a code.
func WithCode(code int, err error) error { return &codedError{code, err} }

// CodeOf maps an error to an exit code. An explicit code wins over the kind of the error, and an unknown server, tool, resource
// or prompt is a usage error because the person typed the name. Errors of no known kind come from reading flags and files.
func CodeOf(err error) int {
	var textual *Error
	var coded *codedError
	var e *messages.Error
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &textual):
		return textual.Code
	case errors.Is(err, messages.ErrUnknownServer), errors.Is(err, messages.ErrUnknownTool),
		errors.Is(err, messages.ErrUnknownResource), errors.Is(err, messages.ErrUnknownPrompt):
		return Usage
	case errors.As(err, &e):
		return codeOfOutcome(e)
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Usage
}

// codeOfOutcome maps the error of a call to an exit code: by its outcome first, since a script decides by it whether it may
// repeat the call, and by its class if there is no outcome.
func codeOfOutcome(e *messages.Error) int {
	switch e.Outcome {
	case messages.OutcomeNotSent:
		// A call with invalid arguments is the caller's mistake. A disabled server has the same class, but its calls are only
		// not sent.
		if e.Class == messages.ClassInvalid && !errors.Is(e, messages.ErrDisabled) {
			return Usage
		}
		return NotSent
	case messages.OutcomeUnknown:
		return Unknown
	case messages.OutcomeRejected:
		return Rejected
	case messages.OutcomeResult, messages.OutcomeToolError: // both are answers; their class decides below
	}
	switch e.Class {
	case messages.ClassInvalid, messages.ClassConfig:
		return Usage
	case messages.ClassCanceled:
		return Interrupted
	default:
		return Failed
	}
}
