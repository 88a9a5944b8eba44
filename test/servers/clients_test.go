package servers_test

import (
	"context"
	"os/exec"
	"slices"
	"testing"

	mcpgoclient "github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// These tests let two clients that do not know the fixtures talk to them: servers that only clients of ours understand would make
// one misreading everybody's truth.

// TestTheGoSDKUnderstandsIt: the Go SDK's client lists and calls a server of each era, and hears of a change.
func TestTheGoSDKUnderstandsIt(t *testing.T) {
	for kind, version := range map[string]string{"good": "2025-11-25", "modern": "2026-07-28"} {
		t.Run(kind, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), bound)
			defer stop()
			changed := make(chan struct{}, 8)
			c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			})
			command, args := servers.Command(kind)
			s, err := c.Connect(ctx, &mcp.CommandTransport{Command: exec.Command(command, args...)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := s.InitializeResult().ProtocolVersion; got != version {
				t.Errorf("it speaks %s", got)
			}
			var names []string
			for tool, err := range s.Tools(ctx, nil) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, tool.Name)
			}
			checkNames(t, names)
			call := func(tool string, args map[string]any) *mcp.CallToolResult {
				r, err := s.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
				if err != nil || len(r.Content) != 1 {
					t.Fatalf("%s: %+v, %v", tool, r, err)
				}
				return r
			}
			if r := call("echo", map[string]any{"text": `"é\`}); r.IsError || r.Content[0].(*mcp.TextContent).Text != `"é\` {
				t.Errorf("echo: %+v", r)
			}
			if r := call("add", map[string]any{"a": 1, "b": 2}); r.StructuredContent.(map[string]any)["sum"] != 3.0 {
				t.Errorf("add: %+v", r)
			}
			if r := call("fail", map[string]any{"text": "no"}); !r.IsError {
				t.Errorf("fail: %+v", r)
			}
			if _, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "no-such-tool"}); err == nil {
				t.Error("a tool that is not there was called")
			}
			call("grow", map[string]any{"name": "more"})
			select {
			case <-changed:
			case <-ctx.Done():
				t.Error("the change was not heard of")
			}
		})
	}
}

// TestMcpGoUnderstandsIt: the same for mcp-go's client.
func TestMcpGoUnderstandsIt(t *testing.T) {
	for kind, version := range map[string]string{"good": "2025-11-25", "modern": "2026-07-28"} {
		t.Run(kind, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), bound)
			defer stop()
			command, args := servers.Command(kind)
			c, err := mcpgoclient.NewStdioMCPClient(command, nil, args...)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ask := mcpgo.InitializeRequest{}
			ask.Params.ClientInfo, ask.Params.ProtocolVersion = mcpgo.Implementation{Name: "test", Version: "1"}, version
			if hello, err := c.Initialize(ctx, ask); err != nil || hello.ProtocolVersion != version {
				t.Fatalf("%+v, %v", hello, err)
			}
			list, err := c.ListTools(ctx, mcpgo.ListToolsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			checkNames(t, names)
			call := func(tool string, args map[string]any) (*mcpgo.CallToolResult, error) {
				r := mcpgo.CallToolRequest{}
				r.Params.Name, r.Params.Arguments = tool, args
				return c.CallTool(ctx, r)
			}
			if r, err := call("echo", map[string]any{"text": `"é\`}); err != nil || r.IsError || r.Content[0].(mcpgo.TextContent).Text != `"é\` {
				t.Errorf("echo: %+v, %v", r, err)
			}
			if r, err := call("fail", map[string]any{"text": "no"}); err != nil || !r.IsError {
				t.Errorf("fail: %+v, %v", r, err)
			}
			if _, err := call("no-such-tool", nil); err == nil {
				t.Error("a tool that is not there was called")
			}
		})
	}
}

// checkNames compares the names of a list with those of a good server.
func checkNames(t *testing.T, names []string) {
	t.Helper()
	for _, name := range servers.GoodTools() {
		if !slices.Contains(names, name) {
			t.Errorf("of %v none is %s", names, name)
		}
	}
}
