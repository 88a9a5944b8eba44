package messages

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrNotShown is wrapped by the error of a question that a server asked and that was shown to no person: there was no
// terminal, no place, or no way to tell whose call it belongs to. It is never reported as a decision of a person.
var ErrNotShown = errors.New("the question was not shown to a person")

// Answerer stands for one caller among several that share a manager: it answers what servers ask about that caller's
// requests. Two requests are those of one caller if their contexts hold the same *Answerer; requests without one are
// those of the program itself. An Answerer is not changed once it is in a context.
type Answerer struct {
	// Elicit answers elicitation/create. It is called concurrently. nil says that this caller cannot be asked: the
	// program's own function answers then, and no other caller.
	Elicit func(ctx context.Context, r ElicitRequest) (ElicitResult, error)
	// Relays says that another client answers, which bounds itself how often its person is asked.
	Relays bool
	// Sample and Roots answer sampling/createMessage and roots/list in the same way.
	Sample func(ctx context.Context, r SampleRequest) (json.RawMessage, error)
	Roots  func(ctx context.Context, server string) ([]Root, error)
	// Log gets the params of the log messages that the server sends about this caller's requests, by the rule for questions, in
	// their order and before the request returns. It must not block. nil wants none.
	Log func(ctx context.Context, params json.RawMessage)
}

type answererKey struct{}

// WithAnswerer returns a context whose requests belong to the caller a, who answers questions about them.
func WithAnswerer(ctx context.Context, a *Answerer) context.Context {
	return context.WithValue(ctx, answererKey{}, a)
}

// AnswererOf returns the caller that WithAnswerer put into the context, nil if there is none.
func AnswererOf(ctx context.Context) *Answerer {
	a, _ := ctx.Value(answererKey{}).(*Answerer)
	return a
}
