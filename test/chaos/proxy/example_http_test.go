package proxy_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	mcpgoclient "github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/test/chaos/proxy"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// Faults between any client and any server over HTTP: here the second call fails. In a test, fault.TestAt(t, fault.HTTP, rules…) in the place
// of fault.New fails it for a rule that never did anything.
func ExampleNewHTTP() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := mcpgoserver.NewMCPServer("clock", "1")
	s.AddTool(mcpgo.NewTool("time"), func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText("noon"), nil
	})
	address := httptest.NewServer(mcpgoserver.NewStreamableHTTPServer(s))
	defer address.Close()

	control, err := fault.New(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	control = control.At(fault.HTTP)
	if _, err := control.Add(fault.Fail("out of order", fault.On("tools/call"), fault.Nth(2))); err != nil {
		fmt.Println(err)
		return
	}
	p, err := proxy.NewHTTP(address.URL, "127.0.0.1:0", proxy.Shared{Control: control})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = p.Serve(ctx) }()

	own, err := mcpgoclient.NewStreamableHttpClient(p.URL())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = own.Close() }()
	if _, err := own.Initialize(ctx, mcpgo.InitializeRequest{}); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		out, err := own.CallTool(ctx, mcpgo.CallToolRequest{Params: mcpgo.CallToolParams{Name: "time"}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(mcpgo.GetTextFromContent(out.Content[0]), out.IsError)
	}
	// Output:
	// noon false
	// out of order true
}
