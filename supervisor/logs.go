package supervisor

import (
	"context"
	"time"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

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
	err := m.sendUnqueued(ctx, server, true, func(ctx context.Context, s *session.Session) error {
		began := time.Now()
		err := s.Ping(ctx)
		took = time.Since(began)
		return err
	})
	return took, err
}
