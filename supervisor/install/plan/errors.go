package plan

import (
	"errors"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The causes of this package's errors, for errors.Is. Each error is a *messages.Error with a text and, where there is
// something to do, a fix.
var (
	// ErrDocument: what a registry or a bundle says of a server cannot be read.
	ErrDocument = errors.New("unreadable server description")
	// ErrUnusable: it can be read, and this way of running the server cannot be taken.
	ErrUnusable = errors.New("no usable way to run the server")
	// ErrMissing: a required value was not given, and nobody could be asked.
	ErrMissing = errors.New("a required value is missing")
	// ErrValue: a value was given that does not fit, or that nothing takes.
	ErrValue = errors.New("a value does not fit")
	// ErrName: a name is none, or means no server or several.
	ErrName = errors.New("no such name")
)

func planError(cause error, text, fix string) error {
	class := messages.ClassConfig
	switch {
	case errors.Is(cause, ErrDocument):
		class = messages.ClassProtocol
	case errors.Is(cause, ErrMissing), errors.Is(cause, ErrValue), errors.Is(cause, ErrName):
		class = messages.ClassInvalid
	}
	return &messages.Error{Op: "install", Class: class, Text: text, Fix: fix, Err: cause}
}
