package plan

import (
	"errors"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The causes of this package's errors, for errors.Is. Each error is a *messages.Error, whose text says what happened
// and whose fix, where there is one, what the person can do.
var (
	// ErrDocument means that the description of a server by a registry or a bundle cannot be read.
	ErrDocument = errors.New("unreadable server description")
	// ErrUnusable means that the description can be read, and that this way of running the server is refused.
	ErrUnusable = errors.New("no usable way to run the server")
	// ErrMissing means that a required value was not given, and that Ask returned none.
	ErrMissing = errors.New("a required value is missing")
	// ErrValue means that a given value does not fit, or has no place.
	ErrValue = errors.New("a value does not fit")
	// ErrName means that a name is malformed, or matches no server or several.
	ErrName = errors.New("no such name")
)

// planError returns a *messages.Error with one of the causes above, which decides its class.
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
