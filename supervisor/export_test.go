package supervisor

import (
	"context"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
)

// Admit decides about a call by the rules, as its path does.
func (m *Manager) Admit(ctx context.Context, tool *Tool, args json.RawMessage) error {
	return m.permissions.AllowCall(ctx, tool, args, new(actors.Trace))
}

// Held returns how much all servers hold of the memory budget.
func (m *Manager) Held() int64 { return m.budget.Total() }

// RunDirectly is a call without what may record it.
func (m *Manager) RunDirectly(ctx context.Context, name string) (*Result, error) {
	return m.callByName(ctx, "", name, nil, nil)
}

// CommandNames are the messages that a manager's actor understands.
var CommandNames = commandNames

// NearestOf returns the error of a request that names what its server does not have, as a caller gets it.
func NearestOf(ctx context.Context, m *Manager, method, server, name string) error {
	unknown := map[string]error{actors.GetPrompt: messages.ErrUnknownPrompt, actors.ReadResource: messages.ErrUnknownResource}[method]
	return m.withNearest(ctx, &actors.Request{Method: method, Server: server, Name: name}, &Error{Text: "it has none", Err: unknown})
}
