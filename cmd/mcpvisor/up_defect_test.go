package main

import (
	"context"
	"os"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/serve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// broken is a program that runs up with work that panics as soon as a server is connected.
func broken() {
	if len(os.Args) > 1 {
		main() // the guardian of this one
		return
	}
	o := cli.NewOptions(context.Background(), terminal.StandardStreams(), nil)
	servers := map[string]messages.Spec{"one": {Command: "fixture", Args: []string{"mcp-fixture", "good"}}}
	o.ReportAtOnce()
	err := serve.KeepServers(context.Background(), o, servers, func(ctx context.Context, m *supervisor.Manager, _ func(string, messages.Outcome)) {
		for len(m.ConnectedServers()) == 0 && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second) // the connection is shown by another goroutine, which must come first
		panic("a bug")
	})
	os.Exit(o.ReportError(err))
}
