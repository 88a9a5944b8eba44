package web_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	mcpgoclient "github.com/mark3labs/mcp-go/client"
	mcpgotransport "github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

// fixed is a server of measurements with one tool.
var fixed = &servers.Fixed{
	Name: "fixed", Tools: `{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`, Call: `{"content":[{"type":"text","text":"y"}]}`,
}

// TestForeignClientsUnderstandAnswers: what measures clients is understood by two that do not know it, as JSON and as events.
func TestForeignClientsUnderstandAnswers(t *testing.T) {
	for name, h := range map[string]string{
		"json": serve(t, web.Answers(fixed.Answer)), "events": serve(t, web.EventAnswers(fixed.Answer)),
	} {
		t.Run("go-sdk, "+name, func(t *testing.T) {
			c, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
				Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h, DisableStandaloneSSE: true}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			list, err := c.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "x" {
				t.Fatalf("listed %+v, %v", list, err)
			}
			r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "x", Arguments: map[string]any{"id": 7}})
			if err != nil || len(r.Content) != 1 || r.Content[0].(*mcp.TextContent).Text != "y" {
				t.Errorf("called: %+v, %v", r, err)
			}
			if err := c.Ping(t.Context(), nil); err != nil {
				t.Error(err)
			}
			if _, err := c.ListPrompts(t.Context(), nil); err == nil {
				t.Error("it has prompts")
			}
		})
		t.Run("mcp-go, "+name, func(t *testing.T) {
			c, err := mcpgoclient.NewStreamableHttpClient(h, mcpgotransport.WithHTTPTimeout(20*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ask := mcpgo.InitializeRequest{}
			ask.Params.ClientInfo, ask.Params.ProtocolVersion = mcpgo.Implementation{Name: "test", Version: "1"}, "2025-11-25"
			if hello, err := c.Initialize(t.Context(), ask); err != nil || hello.ServerInfo.Name != "fixed" {
				t.Fatalf("%+v, %v", hello, err)
			}
			list, err := c.ListTools(t.Context(), mcpgo.ListToolsRequest{})
			if err != nil || !slices.ContainsFunc(list.Tools, func(t mcpgo.Tool) bool { return t.Name == "x" }) {
				t.Fatalf("listed %+v, %v", list, err)
			}
			call := mcpgo.CallToolRequest{}
			call.Params.Name = "x"
			r, err := c.CallTool(t.Context(), call)
			if err != nil || len(r.Content) != 1 || r.Content[0].(mcpgo.TextContent).Text != "y" {
				t.Errorf("called: %+v, %v", r, err)
			}
			if err := c.Ping(t.Context()); err != nil { //nolint:staticcheck // servers of the legacy era are asked so
				t.Error(err)
			}
		})
	}
}

func serve(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
