package gosdk_test

import (
	"context"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// A server of the same program under a manager, as one that is a process or a URL.
func ExampleServe() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s := mcp.NewServer(&mcp.Implementation{Name: "clock", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "time"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noon"}}}, nil, nil
	})
	m, err := supervisor.Start(ctx, supervisor.Config{
		Servers:   map[string]supervisor.Spec{"clock": {Type: supervisor.SDK}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"clock": gosdk.Serve(s)},
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
