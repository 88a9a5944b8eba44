package supervisor

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
)

// WithCaller names the caller of all calls and reads that use the context: a sub-agent, a conversation, a person. Where calls
// wait for a slot at a server (Spec.MaxInFlight), the callers get free slots in turn, so that one with a thousand calls does not
// delay another with a single one. Calls without a name belong to one common caller.
func WithCaller(ctx context.Context, key string) context.Context {
	return messages.WithCaller(ctx, key)
}

// ElicitedBy makes elicit answer the questions of servers about the requests that are made with the result, in the place of
// Config.Elicit: for a program whose callers have a person each. A question reaches the caller whose request it belongs to, and
// no other. Servers of the modern era say which request that is. Those of the legacy era do so over HTTP, if they ask on the
// stream of the request, and for tasks; otherwise the question counts as a caller's only if that caller made every request that
// the server has not answered yet, and else Config.Elicit answers it.
//
// Each call of ElicitedBy makes another caller. A nil elicit says that this caller cannot be asked: Config.Elicit answers.
// The ability is announced to servers only if Config.Elicit is set.
func ElicitedBy(ctx context.Context, elicit func(context.Context, ElicitRequest) (ElicitResult, error)) context.Context {
	return messages.WithAnswerer(ctx, &messages.Answerer{Elicit: elicit})
}
