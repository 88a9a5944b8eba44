package supervisor

import (
	"context"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// This file has the reads of a manager. None asks an actor: every value was published before, so a slow server delays no reader.

// Servers returns the ids of all servers, sorted, those in removal included.
func (m *Manager) Servers() []string {
	return m.shared.Names()
}

// Status returns the status of every server, sorted by name, each followed by those of its instances (Status.InstanceOf). A server
// that is removed meanwhile is left out.
func (m *Manager) Status() []Status {
	names := m.shared.NamesWithInstances()
	out := make([]Status, 0, len(names))
	for _, name := range names {
		if cell := m.shared.CellOf(name); cell != nil {
			out = append(out, m.statusOf(cell))
		}
	}
	return out
}

// ServerStatus returns the status of one server, or of an instance by its name (messages.InstanceName). The error is
// ErrUnknownServer.
func (m *Manager) ServerStatus(name string) (Status, error) {
	cell := m.shared.CellOf(name)
	if cell == nil {
		return Status{}, m.unknownServerError("status", name)
	}
	return m.statusOf(cell), nil
}

// statusOf adds to the published view what depends on the moment of the call: the memory held, if it is at least 1 MiB, and no
// failures for a server that has been healthy for the stable period (the supervisor resets its own count only when it needs it).
func (m *Manager) statusOf(cell *actors.Cell) Status {
	st := cell.View().Status()
	if heldBytes := cell.Share.Held(); heldBytes >= 1<<20 {
		st.Memory = heldBytes
	}
	if st.Status == messages.Connected && timeSince(st.Since) >= m.cfg.Restart.Stable {
		st.Attempts = 0
	}
	return st
}

// ConnectedServers returns the ids of the servers that are connected now, sorted.
func (m *Manager) ConnectedServers() []string {
	var names []string
	for _, name := range m.Servers() {
		if cell := m.shared.CellOf(name); cell != nil && cell.View().State.Phase == messages.Connected {
			names = append(names, name)
		}
	}
	return names
}

// Server returns a handle on one server, nil if no server has the name. It stays valid when the server is reconnected, or removed
// and added again, because it holds the name only.
func (m *Manager) Server(name string) *Server {
	if m.shared.CellOf(name) == nil {
		return nil
	}
	return &Server{m: m, name: name}
}

// Server is a handle on one server of a manager: see [Manager.Server].
type Server struct {
	m    *Manager
	name string
}

// Name returns the server's id.
func (s *Server) Name() string { return s.name }

// Status returns the server's status; the error is ErrUnknownServer once it was removed.
func (s *Server) Status() (Status, error) { return s.m.ServerStatus(s.name) }

// Ready waits until the server can be called: see [Manager.Ready].
func (s *Server) Ready(ctx context.Context) error { return s.m.Ready(ctx, s.name) }

// IsConnected reports whether the server is connected now. A call may fail all the same: the state may change in between.
func (s *Server) IsConnected() bool {
	cell := s.m.shared.CellOf(s.name)
	return cell != nil && cell.View().State.Phase == messages.Connected
}

// Tools returns the entries of the server in the newest snapshot, sorted by name.
func (s *Server) Tools() []*Entry { return s.m.Tools().Server(s.name) }

// CallTool runs a tool of the server by its own name: see [Manager.CallServerTool].
func (s *Server) CallTool(ctx context.Context, tool string, args any, opts ...CallOption) (*Result, error) {
	return s.m.CallServerTool(ctx, s.name, tool, args, opts...)
}

// Tools returns the newest snapshot of the catalog. It takes no lock, and the snapshot never changes: take it once per turn of a
// model, so that the tools are the same throughout.
func (m *Manager) Tools() *Snapshot { return m.shared.Catalog.Snapshot() }

// ToolsOf returns the entries of the named servers, in the order of the names; of all servers if none is named. A lazy server
// that is named and whose tools are not known yet is connected first. The error is about the first name that is unknown
// or whose tools cannot be listed.
func (m *Manager) ToolsOf(ctx context.Context, servers ...string) ([]*Entry, error) {
	if m.closing.Load() {
		return nil, refusal.ClosedError("list tools")
	}
	var out []*Entry
	if len(servers) == 0 {
		return slices.Collect(m.Tools().All()), nil
	}
	for _, name := range servers {
		cell := m.shared.CellOf(name)
		if cell == nil {
			return nil, m.unknownServerError("list tools", name)
		}
		// A server that is pending and has no tools yet may be lazy and at rest: it is woken once.
		entries := m.Tools().Server(name)
		if len(entries) == 0 && cell.View().State.Phase == messages.Pending {
			if err := m.wakeServer(ctx, name); err != nil {
				return nil, err
			}
			entries = m.Tools().Server(name)
		}
		out = append(out, entries...)
	}
	return out, nil
}

// Watch returns a watcher that receives what happens from now on. buffer is how many events may wait (0: 256). The caller closes
// the watcher; one that is too slow loses events and gets their number: see [Watcher].
func (m *Manager) Watch(buffer int) *Watcher { return m.shared.Hub.Watch(buffer) }

// History returns what happened to a server, oldest first: at most 64 entries. The error is ErrUnknownServer.
func (m *Manager) History(name string) ([]HistoryEntry, error) {
	cell := m.shared.CellOf(name)
	if cell == nil {
		return nil, m.unknownServerError("history", name)
	}
	return cell.History.Entries(), nil
}

// AuditStats returns how many records of Config.Audit are written, wait, and are lost. Without Config.Audit all numbers are zero.
func (m *Manager) AuditStats() audit.Stats { return m.audit.Stats() }

// LogLine is one log message of a server: see [actors.LogLine].
type LogLine = actors.LogLine

// Logs returns the newest log messages of a server, oldest first, over reconnects: at most 1,000 lines and 1 MiB. It is nil if no
// server has the name. Spec.LogLevel asks a server for more than it would send by itself. Watch reports each line as EventLog, at
// most 64 a second and server. Their texts are untrusted.
func (m *Manager) Logs(server string) []LogLine {
	cell := m.shared.CellOf(server)
	if cell == nil {
		return nil
	}
	return cell.Logs.Lines()
}

// Ping asks a server for a sign of life and returns how long the answer took. Any answer counts, also an error. A lazy server is
// connected first. The error is an *Error.
func (m *Manager) Ping(ctx context.Context, server string) (time.Duration, error) {
	var took time.Duration
	err := m.sendUnqueued(ctx, "ping", server, func(ctx context.Context, s *session.Session) error {
		began := time.Now()
		err := s.Ping(ctx)
		took = time.Since(began)
		return err
	})
	return took, err
}
