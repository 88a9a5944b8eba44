package supervisor_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// TestNothingIsLeftAfterAMessageToNobody: the actor library keeps a goroutine for a moment when a message cannot be delivered, such as
// the news of a connection that ends while the manager closes. Close waits for it, because a test in virtual time fails for what is left.
func TestNothingIsLeftAfterAMessageToNobody(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			var m *supervisor.Manager
			running := make(chan struct{})
			m = supervisortest.Start(t, supervisortest.NewServer("steady",
				supervisortest.Func("work", func(ctx context.Context, _ supervisortest.Call) (string, error) {
					close(running)
					<-ctx.Done()
					nobody := *m.PID()
					nobody.Id += "/nobody"
					m.System().Root.Send(&nobody, &messages.Unwatch{})
					return "", ctx.Err()
				})))
			go func() { _, _ = m.CallTool(context.Background(), "mcp__steady__work", nil) }()
			<-running
		})
	}
}
