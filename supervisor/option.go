package supervisor

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// A CallOption changes one call or one read.
type CallOption func(*session.Options)

// WithProgress has f called for each progress notification of the request, in order, one at a time, in a goroutine that is not the
// caller's; the last one before the answer is delivered before the request returns. Each notification begins the call timeout anew,
// MaxCallTimeout excepted.
//
// While f works, up to 256 notifications (256 KiB) wait; of those that come then, each takes the place of the one before it. An f that
// does not return holds no other call, and its own at most to the end of its context, or for the server's callTimeout (60 s if it has
// none) after the answer: the request then returns what it was answered, and f is called no more. The goroutine of f is left behind until
// f returns, and named in the log; while 256 of them are left for a server, its calls report no progress. A panic of f is logged.
func WithProgress(f func(Progress)) CallOption {
	return func(o *session.Options) { o.Progress = f }
}

// WithMeta adds the members of a JSON object to the request's _meta: a trace context, for one.
func WithMeta(meta json.RawMessage) CallOption {
	return func(o *session.Options) { o.Meta = meta }
}

// WithCaller names the caller of all calls and reads that use the context: a sub-agent, a conversation, a person. Where calls
// wait for a slot at a server (Spec.MaxInFlight), the callers get free slots in turn, so that one with a thousand calls does not
// delay another with a single one. Calls without a name belong to one common caller.
//
// The name goes all the way: [CallerOf] finds it in the contexts of Config.Interceptors, Allow, Ask, Elicit, Sample, of the
// Authorizer of AuthProvider, and of the handlers of in-process servers (packages transports/mcpgo and gosdk); a transport of the
// program finds it in transports.Message.Caller. Over HTTP each request carries the credentials that the Authorizer gives for its
// own caller; credentials of one caller that the server refuses are that caller's alone (ErrCallerRefused). Lists are read with the
// connection's own. A server whose spec says share "principal" has an instance for each name: see [Spec].
func WithCaller(ctx context.Context, key string) context.Context {
	return messages.WithCaller(ctx, key)
}

// CallerOf returns the name that WithCaller gave, empty if there is none.
func CallerOf(ctx context.Context) string { return messages.CallerOf(ctx) }
