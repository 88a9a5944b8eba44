package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// readFile is a tool that the agent brings itself: it has the methods of supervisor.AgentTool.
type readFile struct{}

func (readFile) Declaration() supervisor.Declaration {
	return supervisor.Declaration{Name: "read_file", Description: "Reads a file",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)}
}

func (readFile) Handler() supervisor.Handler {
	return func(_ context.Context, params map[string]any) (map[string]any, error) {
		return map[string]any{"text": fmt.Sprintf("the text of %v", params["path"])}, nil
	}
}

func (readFile) FormatOutput(result map[string]any) string {
	if text, ok := result["text"].(string); ok {
		return text
	}
	return "error: it cannot be read"
}

// jira stands for somebody's server; most are configured by a command or a URL.
func jira() *server.MCPServer {
	s := server.NewMCPServer("jira", "1.0.0")
	s.AddTool(mcp.NewTool("create_issue", mcp.WithDescription("Creates an issue"), mcp.WithString("summary", mcp.Required())),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("created MYPROJ-123: " + r.GetString("summary", "")), nil
		})
	return s
}

// An agent loop offers the tools of servers beside its own and knows no difference between them: it declares each to the
// model, runs the one that the model names, and feeds back the text, whatever the end of the call was.
func ExampleManager_AgentTools() {
	ctx := context.Background()
	m, err := supervisor.Start(ctx, supervisor.Config{
		Servers:   map[string]supervisor.Spec{"jira": {Type: messages.SDK}},
		InProcess: map[string]func(context.Context, transports.Peer) error{"jira": mcpgo.Serve(jira())},
	})
	if err != nil {
		panic(err)
	}
	defer func() { _ = m.Close(ctx) }()
	_ = m.Settled(ctx) // a server that is not there offers no tools, and is told by m.Status

	fromServers, err := m.AgentTools(ctx)
	if err != nil {
		panic(err)
	}
	tools := map[string]supervisor.AgentTool{}
	for _, tool := range append(fromServers, readFile{}) {
		d := tool.Declaration() // what the model is told: name, description, inputSchema
		tools[d.Name] = tool
	}

	// What a model says, one turn after the other.
	for _, call := range []struct {
		name   string
		params map[string]any
	}{
		{"read_file", map[string]any{"path": "login.go"}},
		{"mcp__jira__create_issue", map[string]any{"summary": "Fix login validation"}},
	} {
		tool := tools[call.name]
		result, err := tool.Handler()(ctx, call.params)
		if err != nil { // there was no answer; the text says whether the call may have run
			result = supervisor.ErrorResult(err)
		}
		fmt.Printf("%s: %s\n", call.name, tool.FormatOutput(result))
	}
	// Output:
	// read_file: the text of login.go
	// mcp__jira__create_issue: created MYPROJ-123: Fix login validation
}
