package agents

import (
	"context"
	"strings"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/test/peers"
)

// TestTheGoClientsUseTheCommand has the clients of the Go SDK and of mcp-go list and call through serve over HTTP and on lines.
func TestTheGoClientsUseTheCommand(t *testing.T) {
	t.Parallel()
	p := newPlace(t, written(t, map[string]any{"mcpServers": map[string]any{"go": map[string]any{"command": peers.Go(t)}}}))
	url := p.serve()
	for way, transport := range map[string]mcp.Transport{
		"over HTTP": &mcp.StreamableClientTransport{Endpoint: url}, "on lines": &mcp.CommandTransport{Command: p.command("serve", "--stdio", "-c", "c.json")},
	} {
		t.Run("go-sdk "+way, func(t *testing.T) {
			progress := make(chan float64, 100)
			client := mcp.NewClient(&mcp.Implementation{Name: "agents", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			})
			s, err := client.Connect(t.Context(), transport, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			params := &mcp.CallToolParams{Name: "go__test_tool_with_progress", Arguments: map[string]any{}}
			params.SetProgressToken("mine")
			if res, err := s.CallTool(t.Context(), params); err != nil || res.IsError {
				t.Fatalf("%v, %v", res, err)
			}
			// The client handles notifications beside the answer, so the last of them may be seen after it.
			for n := range 3 {
				select {
				case <-progress:
				case <-time.After(patience):
					t.Fatalf("of the progress %d notifications came", n)
				}
			}
			if list, err := s.ListTools(t.Context(), nil); err != nil || len(list.Tools) < 20 {
				t.Errorf("%v, %v", list, err)
			}
		})
	}
	t.Run("mcp-go", func(t *testing.T) {
		c, err := mcpclient.NewStreamableHttpClient(url)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		var init mcpgo.InitializeRequest
		init.Params.ProtocolVersion, init.Params.ClientInfo = mcpgo.LATEST_PROTOCOL_VERSION, mcpgo.Implementation{Name: "agents", Version: "1"}
		if _, err := c.Initialize(t.Context(), init); err != nil {
			t.Fatal(err)
		}
		var call mcpgo.CallToolRequest
		call.Params.Name = "go__test_simple_text"
		res, err := c.CallTool(t.Context(), call)
		if err != nil || len(res.Content) != 1 || !strings.Contains(res.Content[0].(mcpgo.TextContent).Text, "simple text") {
			t.Errorf("%v, %v", res, err)
		}
	})
}
