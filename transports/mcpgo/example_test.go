package mcpgo_test

import (
	"context"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// A server of the same program, reached through the same interface as one that is a process or a URL.
func ExampleServe() {
	s := server.NewMCPServer("clock", "1.0.0")
	s.AddTool(mcp.NewTool("time"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("noon"), nil
	})

	t := inprocess.New(mcpgo.Serve(s))
	answers := make(printer, 1)
	conn, err := t.Dial(context.Background(), answers)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Send(context.Background(), transports.Message{ID: 1, Method: "tools/call",
		Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"time"}}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(<-answers)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"noon"}]}}
}

// printer is a sink that hands on what arrives.
type printer chan string

func (p printer) Message(body []byte)            { p <- string(body) }
func (p printer) Oversized(_, _ []byte, _ int64) {}
func (p printer) Noise([]byte)                   {}
func (p printer) Down(error)                     {}
