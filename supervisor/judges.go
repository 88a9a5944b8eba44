package supervisor

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
)

// secondJudgeKey is the key of the context value of AlsoJudgedBy.
type secondJudgeKey struct{}

// AlsoJudgedBy returns a context whose requests the rules of another manager must allow, too, beside those of the manager that they
// are made of. It is for a program with several managers, some of which share the servers of one: their rules may differ. A server of the
// other manager hides one of its name: such a request does not find that one, and gets no answer of it.
func AlsoJudgedBy(ctx context.Context, other *Manager) context.Context {
	return context.WithValue(ctx, secondJudgeKey{}, other)
}

// secondJudge returns the manager of AlsoJudgedBy; nil if there is none.
func secondJudge(ctx context.Context) *Manager {
	m, _ := ctx.Value(secondJudgeKey{}).(*Manager)
	return m
}

// isHidden reports whether the second judge of a request has a server of this name itself.
func isHidden(ctx context.Context, server string) bool {
	other := secondJudge(ctx)
	return other != nil && other.isConfigured(server)
}

// hiddenError is the error of a request that has found a hidden server: nothing is said of it.
func hiddenError(op, server string) *Error {
	return &Error{Op: op, Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Server: server,
		Text: "no such server is configured", Err: messages.ErrUnknownServer}
}

// withoutSecondJudge returns a context for the second judge itself.
func withoutSecondJudge(ctx context.Context) context.Context { return AlsoJudgedBy(ctx, nil) }

// AlwaysDenies reports whether the rules deny every call of a tool, also of one that another manager has: such a tool is not offered.
func (m *Manager) AlwaysDenies(tool *Tool) bool { return m.permissions.AlwaysDenies(tool) }

// MayRead reports whether the rules let resources and prompts of a server be read, also of one that another manager has.
func (m *Manager) MayRead(server string) bool { return m.permissions.CheckRead(server) == nil }
