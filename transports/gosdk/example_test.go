package gosdk_test

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// A server of the same program, reached through the same interface as one that is a process or a URL.
func ExampleServe() {
	s := mcp.NewServer(&mcp.Implementation{Name: "clock", Version: "1.0.0"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "time"}, func(context.Context, *mcp.CallToolRequest, struct{}) (
		*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "noon"}}}, nil, nil
	})

	t := inprocess.New(gosdk.Serve(s))
	answers := make(printer, 1)
	conn, err := t.Dial(context.Background(), answers)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close(context.Background()) }()
	for _, m := range []transports.Message{
		{ID: 1, Method: "initialize", Body: []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{` +
			`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"example","version":"1"}}}`)},
		{Method: "notifications/initialized", Body: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)},
		{ID: 2, Method: "tools/call",
			Body: []byte(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"time","arguments":{}}}`)},
	} {
		if _, err := conn.Send(context.Background(), m); err != nil {
			fmt.Println(err)
			return
		}
		if m.Method == "initialize" {
			<-answers // what the server can do
		}
	}
	fmt.Println(<-answers)
	// Output:
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"noon"}]}}
}

// printer is a sink that hands on what arrives.
type printer chan string

func (p printer) Message(body []byte)            { p <- string(body) }
func (p printer) Oversized(_, _ []byte, _ int64) {}
func (p printer) Noise([]byte)                   {}
func (p printer) Down(error)                     {}
