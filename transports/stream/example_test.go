package stream_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stream"
)

// A server behind a stream that the program opens: here one end of a pipe in memory, as it could be a channel of SSH. Only the
// program's own function knows the type of the spec.
func ExampleNew_supervisor() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	open := func(context.Context) (io.ReadWriteCloser, error) {
		here, there := net.Pipe()
		go func() { _ = server.NewStdioServer(greeter()).Listen(ctx, there, there) }()
		return here, nil
	}
	m, err := supervisor.Start(ctx, supervisor.Config{
		Servers: map[string]supervisor.Spec{"far": {Type: "ssh", URL: "ssh://example.com"}},
		Transport: func(_ string, spec supervisor.Spec) (transports.Transport, error) {
			if spec.Type != "ssh" {
				return nil, nil
			}
			return stream.New(open), nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close(ctx)
	if err := m.Ready(ctx, "far"); err != nil {
		fmt.Println(err)
		return
	}
	out, err := m.CallServerTool(ctx, "far", "greet", map[string]any{"name": "Ada"})
	fmt.Println(out.Text(), err)
	// Output: hello, Ada <nil>
}

func greeter() *server.MCPServer {
	s := server.NewMCPServer("greeter", "1")
	s.AddTool(mcp.NewTool("greet", mcp.WithString("name")), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("hello, " + r.GetString("name", "")), nil
	})
	return s
}
