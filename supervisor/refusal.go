package supervisor

import (
	"errors"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// refusedByProgram is what a call ends with that Config.Allow has refused: denied and not sent, whatever the error is.
func refusedByProgram(cause error) error {
	e := &Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Text: "the program refused it",
		Err: refusal{cause}}
	if own, ok := cause.(*Error); ok && own.Text != "" { //nolint:errorlint // one that is wrapped is about something else
		e.Text, e.Fix, e.Challenge, e.RetryAfter = own.Text, own.Fix, own.Challenge, own.RetryAfter
		return e
	}
	if text := messages.Line(outcomeWords.Replace(cause.Error()), 400); text != "" {
		e.Text += ": " + text
	}
	return e
}

// outcomeWords takes out what an *Error inside of the cause says of another call: who reads the text would take it for this one.
var outcomeWords = strings.NewReplacer(" (outcome unknown: it may have run)", "", " (not sent)", "")

// refusal is the error of Config.Allow as a cause. It may be about another call, which Config.Allow made to decide: what it
// says of that one's outcome and class is not said of this one.
type refusal struct{ error }

func (r refusal) Is(target error) bool {
	switch target {
	case ErrNotSent, ErrOutcomeUnknown, ErrRejected, ErrNeedsAuth, ErrDenied, ErrInvalid:
		return false
	}
	return errors.Is(r.error, target)
}

func (r refusal) As(target any) bool {
	if _, ok := target.(**Error); ok {
		return false
	}
	return errors.As(r.error, target)
}
