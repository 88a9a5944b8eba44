package supervisor

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
)

// WithCaller says on whose behalf the calls and reads are made that use the context: the name of a sub-agent, of a
// conversation, of a person. Where calls wait for their turn at a server (Spec.MaxInFlight), callers take turns, so that
// one with a thousand calls does not keep another with a single one waiting. All without a key are one caller.
func WithCaller(ctx context.Context, key string) context.Context {
	return messages.WithCaller(ctx, key)
}

// ElicitedBy says that elicit answers what servers ask about the requests that are made with the result, in the place of
// Config.Elicit: for a program whose callers each have a person of their own. A question reaches the caller whose request
// it belongs to and no other one. Servers of the modern era say which request that is. Those of the legacy era do over
// HTTP, if they ask on the stream of the request, and for tasks; else the question is a caller's only if every request
// that the server has not answered is that caller's, and Config.Elicit answers it otherwise.
//
// Each call of ElicitedBy makes another caller. A nil elicit says that this caller cannot be asked: Config.Elicit answers.
// Questions are announced to servers only if Config.Elicit is set.
func ElicitedBy(ctx context.Context, elicit func(context.Context, ElicitRequest) (ElicitResult, error)) context.Context {
	return messages.WithAnswerer(ctx, &messages.Answerer{Elicit: elicit})
}
