package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The exit codes, as the help of the program lists them.
const (
	exitOK          = 0
	exitFailed      = 1 // a tool answered isError, or a server is not connected
	exitUsage       = 2 // usage or configuration
	exitNotSent     = 3
	exitUnknown     = 4
	exitRejected    = 5
	exitInterrupted = 130
)

// errInterrupted is the cause of the context of a run that the person interrupted.
var errInterrupted = errors.New("interrupted")

// exitError ends the program with a code, after one sentence on standard error. An empty text prints nothing: the
// command has said everything itself.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

// usageError is a wrong command line.
func usageError(cmd *cobra.Command, format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...) + "; see: " + cmd.CommandPath() + " --help"}
}

// codedError is an error that ends the program with another code than its kind would.
type codedError struct {
	code int
	error
}

func (e *codedError) Unwrap() error { return e.error }

// reportError prints the error of a run in one sentence, with --json as an object, and gives its exit code.
func (o *options) reportError(err error) int {
	if o.json {
		o.failJSON(err)
	}
	if err == nil {
		return exitOK
	}
	if text := err.Error(); text != "" && !o.json {
		fmt.Fprintln(o.err, "mcpvisor: "+messages.Printable(text))
	}
	return codeOf(err)
}

func codeOf(err error) int {
	var exit *exitError
	var coded *codedError
	var e *messages.Error
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &exit):
		return exit.code
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

func codeOfOutcome(e *messages.Error) int {
	switch e.Outcome {
	case messages.OutcomeNotSent:
		if e.Class == messages.ClassInvalid && !errors.Is(e, messages.ErrDisabled) {
			return exitUsage
		}
		return exitNotSent
	case messages.OutcomeUnknown:
		return exitUnknown
	case messages.OutcomeRejected:
		return exitRejected
	case messages.OutcomeResult, messages.OutcomeToolError:
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
