package supervisor

import (
	"context"
	"encoding/json"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Progress says how far a request has got: see [messages.Progress].
type Progress = messages.Progress

// A CallOption changes one call or one read.
type CallOption func(*session.Options)

// WithProgress has f called for each progress notification of the request, in order, one at a time, and never after the
// request has returned. f must return soon: what comes faster is dropped, except for the last one before the answer. Each
// notification begins the call timeout anew, MaxCallTimeout excepted.
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

// sessionOptions collects the options of one call; nil if there are none, which spares the usual call an allocation. The
// program's functions are wrapped here, because they run on the connection's goroutine and a panic there would end it.
func (m *Manager) sessionOptions(opts []CallOption) *session.Options {
	if len(opts) == 0 {
		return nil
	}
	o := &session.Options{}
	for _, wish := range opts {
		if wish != nil {
			wish(o)
		}
	}
	// The session calls these functions between the messages of the connection.
	if f := o.Progress; f != nil {
		o.Progress = func(p Progress) {
			defer func() {
				if r := recover(); r != nil {
					m.cfg.Logger.Error("panic in a progress function", zap.Any("panic", r), zap.ByteString("stack", debug.Stack()))
				}
			}()
			f(p)
		}
	}
	if o.OnTask != nil {
		o.OnTask = m.guardedTask(o.OnTask)
	}
	return o
}
