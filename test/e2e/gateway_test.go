package e2e

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// startGateway serves the Go SDK's everything-server, in one era, through the gateway, and returns its URL.
func startGateway(t *testing.T, era messages.Era) string {
	t.Helper()
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"everything": {Command: peers.Go(t), Era: era}}}
	gateway.PassQuestions(&cfg)
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	g := gateway.New(gateway.Config{Manager: m})
	h := serve.NewHandler(serve.Options{Service: g})
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = h.Close(ctx)
		server.CloseClientConnections()
		server.Close()
		g.Close()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := m.Ready(t.Context(), "everything"); err != nil {
		t.Fatal(err)
	}
	return server.URL + "/mcp"
}

// The client of the Go SDK lists and calls through the gateway, answers a question of the server, and hears its progress.
func TestGatewayServesTheGoSDKsClient(t *testing.T) {
	for _, era := range []messages.Era{messages.EraLegacy, messages.EraModern} {
		t.Run(string(era), func(t *testing.T) {
			progress := make(chan float64, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1"}, &mcp.ClientOptions{
				ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"username": "ann", "email": "a@b.example"}}, nil
				},
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			})
			s, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: startGateway(t, era)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			list, err := s.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) < 20 {
				t.Fatalf("%v, %v", list, err)
			}
			call := func(tool string) string {
				params := &mcp.CallToolParams{Name: "everything__" + tool, Arguments: map[string]any{}}
				params.SetProgressToken("mine")
				res, err := s.CallTool(t.Context(), params)
				if err != nil {
					t.Fatalf("%s: %v", tool, err)
				}
				return fmt.Sprint(res.Content[0].(*mcp.TextContent).Text)
			}
			if got := call("test_simple_text"); got != "This is a simple text response for testing." {
				t.Errorf("the answer is %q", got)
			}
			call("test_tool_with_progress")
			select { // the client handles notifications beside the answer
			case <-progress:
			case <-time.After(time.Minute):
				t.Error("no progress was heard")
			}
			if prompt, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "everything__test_simple_prompt"}); err != nil || len(prompt.Messages) == 0 {
				t.Errorf("the prompt: %v, %v", prompt, err)
			}
			if res, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://static-text"}); err != nil || len(res.Contents) != 1 {
				t.Errorf("the resource: %v, %v", res, err)
			}
		})
	}
}

// mcp-go's client does the same.
func TestGatewayServesMCPGosClient(t *testing.T) {
	c, err := mcpclient.NewStreamableHttpClient(startGateway(t, messages.EraAuto))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var init mcpgo.InitializeRequest
	init.Params.ProtocolVersion, init.Params.ClientInfo = mcpgo.LATEST_PROTOCOL_VERSION, mcpgo.Implementation{Name: "e2e", Version: "1"}
	if _, err := c.Initialize(t.Context(), init); err != nil {
		t.Fatal(err)
	}
	list, err := c.ListTools(t.Context(), mcpgo.ListToolsRequest{})
	if err != nil || len(list.Tools) < 20 {
		t.Fatalf("%v, %v", list, err)
	}
	var call mcpgo.CallToolRequest
	call.Params.Name = "everything__test_simple_text"
	res, err := c.CallTool(t.Context(), call)
	if err != nil || len(res.Content) != 1 {
		t.Fatalf("%v, %v", res, err)
	}
	call.Params.Name = "everything__test_error_handling"
	if res, err = c.CallTool(t.Context(), call); err != nil || !res.IsError {
		t.Errorf("a tool's own error: %v, %v", res, err)
	}
}
