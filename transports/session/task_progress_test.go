package session_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// A task that reports progress is at work: its call does not time out between two polls, however far these are apart.
func TestProgressOfATaskProlongsItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			answer := func(result string) { w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, m.ID, result)) }
			task := func(status string) string {
				return `{"taskId":"t-1","status":"` + status + `","createdAt":"2026-08-01T00:00:00Z","ttl":null,"pollInterval":30000}`
			}
			switch m.Method {
			case "initialize":
				answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"s","version":"1"}}`)
			case "tools/list":
				answer(`{"tools":[{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}`)
			case "tools/call":
				answer(`{"task":` + task("working") + `}`)
				go func() { // it ends before the first poll
					for n := range 5 {
						time.Sleep(5 * time.Second)
						w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%d,"progress":%d}}`, m.ID, n))
					}
				}()
			case "tasks/get":
				answer(task("completed"))
			case "tasks/result":
				answer(`{"content":[]}`)
			}
			return transports.Written, nil
		}
		s := connected(t, w, session.Config{})
		if _, err := s.ListTools(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx := session.NewCallTimeout(t.Context(), 10*time.Second, 0)
		defer ctx.Stop()
		if _, err := s.OpenGate().CallWith(ctx, "slow", nil, &session.Options{Progress: func(messages.Progress) {}}); err != nil {
			t.Errorf("the call of a task that reported progress every 5 s ended with %v", err)
		}
		time.Sleep(30 * time.Second) // the server has reported all by then
	})
}
