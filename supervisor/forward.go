package supervisor

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/auditor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// Forward sends a request about what a server offers beside tools as another client wrote it, and returns the server's result
// object byte for byte: resources/read, prompts/get, completion/complete. name is the URI or the prompt's name; fields are the
// members of params without _meta, without braces. The error is an *Error with an Outcome, whose Reply is the server's own error.
// After a lost connection the request is sent once more, under the conditions of ReadServerResource.
func (m *Manager) Forward(
	ctx context.Context, server, method, name string, fields json.RawMessage, opts ...CallOption,
) (json.RawMessage, error) {
	r := &actors.Request{Method: method, Server: server, Name: name, Repeatable: true,
		Send: func(ctx context.Context, s *session.Session, r *actors.Request) (err error) {
			r.Answer.Raw, err = s.Forward(ctx, method, name, fields, r.Options)
			return err
		}}
	if err := m.handleWith(ctx, r, opts); err != nil {
		return nil, err
	}
	return r.Result, nil
}

// RefuseCall ends a call that the rules of a gateway deny, and returns its error. No server is looked for; the call is recorded as each other,
// with the decision.
func (m *Manager) RefuseCall(ctx context.Context, server, tool string, args json.RawMessage, d access.Decision) error {
	if ctx == nil {
		return refusal.NilContextError("call", server, tool)
	}
	refused := &Error{Op: "call", Outcome: OutcomeNotSent, Class: messages.ClassDenied, Server: server, Tool: tool,
		Text: "the call is not allowed: " + d.Why, Err: messages.ErrDenied}
	r := actors.NewToolCall(server, tool)
	defer r.Release()
	r.Args, r.Problem = args, refused
	auditor.NoteDecision(&r.Trace, d)
	if err := m.calls.Handle(ctx, r); err != nil {
		return err
	}
	return refused // an interceptor has dropped it
}

// SetLogLevel asks a connected server of the legacy era for log messages of a level and above, until its connection ends; servers
// of the modern era are asked with each request (Answerer.Log). Spec.LogLevel asks each connection from its beginning.
func (m *Manager) SetLogLevel(ctx context.Context, server, level string) error {
	return m.sendUnqueued(ctx, "logging/setLevel", server, func(ctx context.Context, s *session.Session) error {
		return s.SetLogLevel(ctx, level, nil)
	})
}

// PostLogLevel is SetLogLevel for a program that keeps the level of a connection on its own account: it is no use of the server, so that a lazy
// one rests all the same, and nothing that is asked of the server waits for it. posted is called once, soon and before the answer: over a
// connection that has one order, as that of a child process, what is sent to the server from then on comes after the request.
func (m *Manager) PostLogLevel(ctx context.Context, server, level string, posted func()) {
	posted = sync.OnceFunc(posted)
	defer posted()
	if cell := m.shared.CellOf(server); cell != nil && ctx != nil {
		if s := cell.View().Session; s != nil {
			_ = s.SetLogLevel(ctx, level, posted) // a server that refuses chooses its level itself
		}
	}
}

// Capabilities returns what a connected server declared in its handshake; nil if it is not connected.
func (m *Manager) Capabilities(server string) *session.Capabilities {
	cell := m.shared.CellOf(server)
	if cell == nil {
		return nil
	}
	s := cell.View().Session
	if s == nil {
		return nil
	}
	if info := s.SharedInfo(); info != nil {
		return &info.Capabilities
	}
	return nil
}

// EraOf returns the era that a connected server speaks, EraAuto if it is not connected or has not said it yet.
func (m *Manager) EraOf(server string) messages.Era {
	cell := m.shared.CellOf(server)
	if cell == nil {
		return messages.EraAuto
	}
	s := cell.View().Session
	if s == nil {
		return messages.EraAuto
	}
	return s.Era()
}
