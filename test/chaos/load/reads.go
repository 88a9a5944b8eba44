package load

import (
	"context"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// Read makes one read of a stream that says what is read. What comes of it is the manager's answer; that there is one at all is what a
// run finds out.
func Read(ctx context.Context, m *supervisor.Manager, c Call) error {
	server := c.Stream.Server
	one := "chaos://" + server + "/one"
	var err error
	switch c.Stream.Read {
	case "resources":
		_, err = m.Resources(ctx, server)
	case "templates":
		_, err = m.ResourceTemplates(ctx, server)
	case "resource":
		if c.odd() {
			_, err = m.ReadResource(ctx, one)
		} else {
			_, err = m.ReadServerResource(ctx, server, one)
		}
	case "prompts":
		_, err = m.Prompts(ctx, server)
	case "prompt":
		_, err = m.GetServerPrompt(ctx, server, "greet", map[string]string{"who": "all"})
	case "complete":
		_, err = m.Complete(ctx, server, messages.CompleteRequest{Prompt: "greet", Argument: "who", Value: "a"})
	case "subscribe":
		if c.odd() {
			err = m.SubscribeResource(ctx, server, one)
		} else {
			err = m.UnsubscribeResource(ctx, server, one)
		}
	case "tasks":
		var tasks []supervisor.TaskStatus
		if tasks, err = m.Tasks(ctx, server); err == nil && len(tasks) > 0 {
			_, err = m.Task(ctx, server, tasks[len(tasks)-1].ID)
		}
	case "ping":
		_, err = m.Ping(ctx, server)
	}
	return err
}

// odd says that the call has an odd number.
func (c Call) odd() bool { return len(c.ID) > 0 && (c.ID[len(c.ID)-1]-'0')%2 == 1 }
