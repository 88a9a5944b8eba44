package messages

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// Outcome says whether a tool call ran and how it ended. Every accepted call has exactly one.
type Outcome string

const (
	// OutcomeResult: the tool ran and answered.
	OutcomeResult Outcome = "result"
	// OutcomeToolError: the tool ran and answered with isError. It is a result, not a Go error.
	OutcomeToolError Outcome = "tool-error"
	// OutcomeRejected: the server refused the request before running it (a JSON-RPC error, 401, 403).
	OutcomeRejected Outcome = "rejected"
	// OutcomeNotSent: no byte of the request was written. Calling again cannot run the tool twice.
	OutcomeNotSent Outcome = "not-sent"
	// OutcomeUnknown: the request may have run. Calling again may run the tool twice.
	OutcomeUnknown Outcome = "unknown"
)

// Error is the one error type of the facade, the messages and the command.
//
// errors.Is works with the Err… values below and with context.Canceled and context.DeadlineExceeded; errors.As with
// *Error. The text says what happened, to which server, and what to do. It never holds a header value, an environment
// value or a token: the code that makes an Error leaves them out. Characters that act on a terminal are replaced by the
// method Error itself.
type Error struct {
	// Op names the operation that failed: "call", "connect", "configure", "read".
	Op string
	// Outcome is set for calls and reads; of a command it is OutcomeNotSent where the command was refused before anything was done.
	Outcome Outcome
	// Class says what the error means; never empty.
	Class Class
	// Server and Tool name what it happened to, as far as known.
	Server, Tool string
	// Text is one sentence without a final full stop: what happened.
	Text string
	// Fix is one sentence without a final full stop: what to do. It may be empty.
	Fix string
	// Nearest is the name that was probably meant, when what was named does not exist and the caller may use what has the nearest name; Fix
	// then asks for it. It is a name of the kind that was given: a qualified one, a server's id, a server's own name, or a URI; a server
	// chose it.
	Nearest string
	// Code and Data are those of a JSON-RPC error when the server rejected the request.
	Code int
	Data json.RawMessage
	// Reply is that error object for a program that passes it on, byte for byte but for the secrets of the server's spec; untrusted.
	Reply json.RawMessage
	// Challenge says what the server demands, when Class is ClassUnauthorized or ClassForbidden; nil otherwise.
	Challenge *Challenge
	// RetryAfter is the server's own wish when Class is ClassThrottled; 0 if it gave none. Of a call or a read that was not sent
	// because its server is not connected it is the time until the next attempt to connect it begins; 0 if none is planned, or
	// one is under way.
	RetryAfter time.Duration
	// Retry is set, for calls and reads only, when the request was not sent because its server is not connected, and says what
	// follows: RetryAt for an attempt that is planned or under way, RetryParked for a rare probe, RetryNever if a person or a
	// command must act first. MayRetry and ErrNotConnected follow from it.
	Retry Retry
	// Task is the id of the task that the call has become, if it may go on at the server without us: with it, its state
	// and its result can be asked for later, also over another connection. It is not part of the text, because a server
	// may use it as a credential.
	Task string
	// Err is the cause, if there is one worth unwrapping.
	Err error
}

// Challenge says what a server asks for before it lets us in, as its WWW-Authenticate header tells it (RFC 6750, section 3).
type Challenge struct {
	// Scheme is the authentication scheme of WWW-Authenticate, usually "Bearer".
	Scheme string `json:"scheme,omitempty"`
	// Scope holds the scopes that are missing, separated by blanks.
	Scope string `json:"scope,omitempty"`
	// ResourceMetadata is the URL of the protected-resource metadata (RFC 9728).
	ResourceMetadata string `json:"resourceMetadata,omitempty"`
	// Text is the server's own description, neutralised.
	Text string `json:"text,omitempty"`
}

// The sentinels select by outcome or class: errors.Is(err, messages.ErrNotSent).
var (
	// ErrNotSent matches every error whose outcome is OutcomeNotSent.
	ErrNotSent = errors.New("not sent")
	// ErrOutcomeUnknown matches every error whose outcome is OutcomeUnknown.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrRejected matches every error whose outcome is OutcomeRejected.
	ErrRejected = errors.New("rejected by the server")
	// ErrNeedsAuth matches ClassUnauthorized.
	ErrNeedsAuth = errors.New("authorization needed")
	// ErrDenied matches ClassDenied.
	ErrDenied = errors.New("denied by a rule")
	// ErrInvalid matches ClassInvalid and ClassConfig.
	ErrInvalid = errors.New("invalid")
	// ErrUnknownServer is wrapped by the error for a name that no configured server has, ErrUnknownTool by that for a tool that no
	// server offers.
	ErrUnknownServer = errors.New("no such server")
	ErrUnknownTool   = errors.New("no such tool")
	// ErrUnknownResource and ErrUnknownPrompt are wrapped by the errors that name one that no server offers.
	ErrUnknownResource = errors.New("no such resource")
	ErrUnknownPrompt   = errors.New("no such prompt")
	// ErrNotConnected matches every error of a call or a read whose server is configured and not connected: see Error.Retry. A name
	// that no configured server has is ErrUnknownServer or ErrUnknownTool, and a server that is switched off ErrDisabled.
	ErrNotConnected = errors.New("the server is not connected")
	// ErrCallerRefused is wrapped by the error of a call whose caller (WithCaller) has no credentials that the server accepts, while
	// those of others serve: the server stays connected.
	ErrCallerRefused = errors.New("the credentials of the caller are refused")
	// ErrMemory is wrapped by errors about what was refused because a server holds its share of the memory for all servers.
	ErrMemory = errors.New("the memory for all servers is used up")
	// ErrDisabled is wrapped by errors about a disabled server.
	ErrDisabled = errors.New("server is disabled")
	// ErrQueueFull is wrapped by the error of a call that was not sent because Spec.MaxQueued calls wait for a slot at
	// its server.
	ErrQueueFull = errors.New("too many calls wait for the server")
	// ErrTooManyInstances is wrapped by the error of a call that was not sent because its server has as many instances as it may
	// (Spec.MaxInstances), and none for this caller.
	ErrTooManyInstances = errors.New("too many callers have an instance of the server")
	// ErrClosed is wrapped by everything that is asked of a closed manager.
	ErrClosed = errors.New("manager is closed")
)

// Error implements error: `server "x": text; fix`, neutralised (Printable).
func (e *Error) Error() string {
	var b strings.Builder
	if e.Server != "" {
		b.WriteString("server ")
		b.WriteString(quoteName(e.Server))
		if e.Tool != "" {
			b.WriteString(", tool ")
			b.WriteString(quoteName(e.Tool))
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Text)
	switch e.Outcome {
	case OutcomeNotSent:
		b.WriteString(" (not sent)")
	case OutcomeUnknown:
		b.WriteString(" (outcome unknown: it may have run)")
	}
	if e.Fix != "" {
		b.WriteString("; ")
		b.WriteString(e.Fix)
	}
	return Printable(b.String())
}

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is work with the sentinels of this package.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrNotSent:
		return e.Outcome == OutcomeNotSent
	case ErrOutcomeUnknown:
		return e.Outcome == OutcomeUnknown
	case ErrRejected:
		return e.Outcome == OutcomeRejected
	case ErrNotConnected:
		return e.Retry != ""
	case ErrNeedsAuth:
		return e.Class == ClassUnauthorized
	case ErrDenied:
		return e.Class == ClassDenied
	case ErrInvalid:
		return e.Class == ClassInvalid || e.Class == ClassConfig
	case context.DeadlineExceeded:
		return e.Class == ClassTimeout
	case context.Canceled:
		return e.Class == ClassCanceled
	}
	return false
}

// ClassOf returns the class of err: that of the first *Error in its chain that has one, else one that follows from the
// context errors, else ClassNetwork for any other error and ClassNone for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ClassNone
	}
	if e := firstError(err, func(e *Error) bool { return e.Class != ClassNone }); e != nil {
		return e.Class
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return ClassTimeout
	case errors.Is(err, context.Canceled):
		return ClassCanceled
	}
	return ClassNetwork
}

// OutcomeOf returns the outcome of err: that of the first *Error in its chain that has one, so that it agrees with
// errors.Is. It is OutcomeResult for nil, and OutcomeUnknown for an error without one, because nothing is known about
// it.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OutcomeResult
	}
	if e := firstError(err, func(e *Error) bool { return e.Outcome != "" }); e != nil {
		return e.Outcome
	}
	return OutcomeUnknown
}

// firstError returns the first *Error in the chain of err for which has is true, or nil. errors.As alone stops at the first
// *Error, which may be a wrapper that says nothing of what is asked.
func firstError(err error, has func(*Error) bool) *Error {
	var e *Error
	for errors.As(err, &e) {
		if has(e) {
			return e
		}
		err, e = e.Err, nil
	}
	return nil
}
