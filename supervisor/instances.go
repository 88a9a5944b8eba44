package supervisor

import (
	"context"
	"slices"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/core"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
)

// This file has what a caller of WithCaller sees of its own: the tools that it may call, and the instances of servers whose spec
// has share "principal".

// ToolsFor returns what the caller of ctx (WithCaller) may call, sorted by name: of a server with share "principal" the tools of the
// caller's instance while it is connected, of every other server those of [Manager.Tools]; without the tools that Config.Allow
// refuses to the caller. It asks Allow about each as about a call without arguments: an Allow that decides by the arguments
// must allow what it may allow with others. When ctx ends, what it was not asked about is left out. It starts no instance. The rules
// know no callers: what they always deny is in no list.
//
// The entries are those of one snapshot. They change with its Generation, which also rises when an instance connects, or lists other
// tools, and with what Allow says.
func (m *Manager) ToolsFor(ctx context.Context) []*Entry { return m.toolsOfCaller(ctx, m.Tools()) }

// toolsOfCaller is ToolsFor for a snapshot that the caller has.
func (m *Manager) toolsOfCaller(ctx context.Context, snapshot *Snapshot) []*Entry {
	if ctx == nil {
		return nil
	}
	out := m.unaskedToolsOf(ctx, snapshot)
	if m.cfg.Allow == nil {
		return out
	}
	return slices.DeleteFunc(out, func(e *Entry) bool { return m.refusesAlways(ctx, e.Tool) })
}

// unaskedToolsOf is toolsOfCaller without the answers of Config.Allow. The slice is the caller's.
func (m *Manager) unaskedToolsOf(ctx context.Context, snapshot *Snapshot) []*Entry {
	own := map[string][]*Entry{}
	if principal := CallerOf(ctx); principal != "" {
		for _, server := range m.Servers() {
			if cell := m.shared.CellOf(server); cell != nil && cell.View().Spec.Share == messages.SharePrincipal {
				own[server] = m.ownEntries(snapshot, cell, principal)
			}
		}
	}
	out := make([]*Entry, 0, snapshot.Len())
	for e := range snapshot.All() {
		if own[e.Tool.Server] == nil {
			out = append(out, e)
		}
	}
	before := len(out)
	for _, entries := range own {
		out = append(out, entries...)
	}
	if len(out) > before {
		slices.SortFunc(out, func(a, b *Entry) int { return compareText(a.Name, b.Name) })
	}
	return out
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// ownEntries returns the entries of a principal's instance, not nil if it is connected; nil means that the server's own are offered.
func (m *Manager) ownEntries(snapshot *Snapshot, server *actors.Cell, principal string) []*Entry {
	cell := server.Instances.Of(principal)
	if cell == nil || cell.View().State.Phase != messages.Connected {
		return nil
	}
	return append([]*Entry{}, snapshot.Server(cell.View().Name)...)
}

// refusesAlways reports whether Config.Allow refuses a tool to the caller of ctx whatever the arguments.
func (m *Manager) refusesAlways(ctx context.Context, tool *Tool) bool {
	return m.permissions.AllowTool(ctx, tool) != nil
}

// Instances returns the names of a server's instances, sorted, those that end included; nil if it has none.
func (m *Manager) Instances(server string) (names []string) {
	cell := m.shared.CellOf(server)
	if cell == nil {
		return nil
	}
	for _, i := range cell.Instances.All() {
		names = append(names, i.View().Name)
	}
	return names
}

// InstanceOf returns the server that an instance belongs to, and for which caller it is. Events, statuses and errors name instances;
// ok is false for every other name.
func (m *Manager) InstanceOf(name string) (server, principal string, ok bool) {
	cell := m.shared.CellOf(name)
	if cell == nil || cell.Use == nil {
		return "", "", false
	}
	spec := cell.View().Spec
	return spec.InstanceOf, spec.Principal, true
}

// startInstance implements actors.Calls.StartInstance.
func (m *Manager) startInstance(ctx context.Context, server, principal string) error {
	err, askErr := askSupervisor(ctx, m, "call", server, func(reply func(error)) any {
		return core.StartInstance{Server: server, Principal: principal, Reply: reply}
	})
	if askErr == nil {
		return err
	}
	if m.closing.Load() {
		return refusal.ClosedError("call")
	}
	return &Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassOf(askErr), Server: server,
		Text: "the call ended before its instance was there", Err: askErr}
}

// awaitInstancesEnd returns when no new call can reach an instance of a server that is removed or disabled. cell is that server's.
func (m *Manager) awaitInstancesEnd(ctx context.Context, op, name string, cell *actors.Cell) error {
	for _, i := range cell.Instances.All() {
		if _, err := i.Wait(ctx, func(v *actors.View) bool { return v.State.Removing }); err != nil {
			return &Error{Op: op, Class: messages.ClassOf(err), Server: name, Text: "the context ended first", Err: err}
		}
	}
	return nil
}
