package supervisor

import "context"

// secondJudgeKey is the key of the context value of AlsoJudgedBy.
type secondJudgeKey struct{}

// AlsoJudgedBy returns a context whose requests the rules of another manager must allow, too, beside those of the manager that they
// are made of. It is for a program with several managers, some of which share the servers of one: their rules may differ.
func AlsoJudgedBy(ctx context.Context, other *Manager) context.Context {
	return context.WithValue(ctx, secondJudgeKey{}, other)
}

// secondJudge returns the manager of AlsoJudgedBy; nil if there is none.
func secondJudge(ctx context.Context) *Manager {
	m, _ := ctx.Value(secondJudgeKey{}).(*Manager)
	return m
}

// withoutSecondJudge returns a context for the second judge itself.
func withoutSecondJudge(ctx context.Context) context.Context { return AlsoJudgedBy(ctx, nil) }

// AlwaysDenies reports whether the rules deny every call of a tool, also of one that another manager has: such a tool is not offered.
func (m *Manager) AlwaysDenies(tool *Tool) bool { return m.permissions.AlwaysDenies(tool) }

// MayRead reports whether the rules let resources and prompts of a server be read, also of one that another manager has.
func (m *Manager) MayRead(server string) bool { return m.permissions.CheckRead(server) == nil }
