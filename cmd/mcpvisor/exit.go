package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The exit codes. They are part of the interface to scripts: longHelp lists them, and a number never changes its meaning.
const (
	exitOK          = 0
	exitFailed      = 1   // a tool answered isError, or a server is not connected
	exitUsage       = 2   // usage or configuration
	exitNotSent     = 3   // the call never reached the server, so that repeating it is safe
	exitUnknown     = 4   // the call was sent and no answer came: it may have run
	exitRejected    = 5   // the server answered with a JSON-RPC error
	exitInterrupted = 130 // 128 + SIGINT, as shells report it
)

// exitError ends the program with a code, after one sentence on standard error. An empty text prints nothing, because the
// command has already printed everything.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// exitWith returns the error that ends the program with a code, after one sentence on standard error.
func exitWith(code int, text string) error { return &exitError{code, text} }

// usageError returns the error for a wrong command line, with exitUsage and a pointer to the command's help.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	return exitWith(exitUsage, fmt.Sprintf(format, args...)+"; see: "+cmd.CommandPath()+" --help")
}

// codedError wraps an error to end the program with another code than codeOf would choose for its kind.
type codedError struct {
	code int
	error
}

func (e *codedError) Unwrap() error { return e.error }

// withExitCode wraps an error to end the program with a code.
func withExitCode(code int, err error) error { return &codedError{code, err} }

// codeOf maps an error to an exit code. An explicit code wins over the kind of the error, and an unknown server, tool, resource
// or prompt is a usage error because the person typed the name. Errors of no known kind come from reading flags and files.
func codeOf(err error) int {
	var textual *exitError
	var coded *codedError
	var e *messages.Error
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &textual):
		return textual.code
	case errors.Is(err, messages.ErrUnknownServer), errors.Is(err, messages.ErrUnknownTool),
		errors.Is(err, messages.ErrUnknownResource), errors.Is(err, messages.ErrUnknownPrompt):
		return exitUsage
	case errors.As(err, &e):
		return codeOfOutcome(e)
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitUsage
}

// codeOfOutcome maps the error of a call to an exit code: by its outcome first, since a script decides by it whether it may
// repeat the call, and by its class if there is no outcome.
func codeOfOutcome(e *messages.Error) int {
	switch e.Outcome {
	case messages.OutcomeNotSent:
		// A call with invalid arguments is the caller's mistake. A disabled server has the same class, but its calls are only
		// not sent.
		if e.Class == messages.ClassInvalid && !errors.Is(e, messages.ErrDisabled) {
			return exitUsage
		}
		return exitNotSent
	case messages.OutcomeUnknown:
		return exitUnknown
	case messages.OutcomeRejected:
		return exitRejected
	case messages.OutcomeResult, messages.OutcomeToolError: // both are answers; their class decides below
	}
	switch e.Class {
	case messages.ClassInvalid, messages.ClassConfig:
		return exitUsage
	case messages.ClassCanceled:
		return exitInterrupted
	default:
		return exitFailed
	}
}
