package mcpgo_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// A server of the same program under a manager, as one that is a process or a URL.
func ExampleServe() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := server.NewMCPServer("clock", "1.0.0")
	s.AddTool(mcp.NewTool("time"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("noon"), nil
	})
	m, err := supervisor.Start(ctx, supervisor.Config{
		Servers:   map[string]supervisor.Spec{"clock": {Type: supervisor.SDK}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"clock": mcpgo.Serve(s)},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	if err := m.Ready(ctx, "clock"); err != nil {
		fmt.Println(err)
		return
	}
	out, err := m.CallTool(ctx, "mcp__clock__time", nil)
	fmt.Println(out.Text(), err)
	// Output: noon <nil>
}
