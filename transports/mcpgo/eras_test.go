package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// able has the capabilities that the client of these tests declares.
const able = `{"sampling":{},"elicitation":{},"roots":{"listChanged":true}}`

func (c *client) handshakeAs(capabilities string) {
	c.t.Helper()
	c.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+
		`,"clientInfo":{"name":"test","version":"1"}}`)
	c.notify("notifications/initialized", `{}`)
}

// answerServerRequest waits for the nth request of the server with that method and answers it with member, "result":… or "error":….
func (c *client) answerServerRequest(n int, method, member string) (params string) {
	c.t.Helper()
	c.waitFor(n, `"method":"`+method+`"`)
	var last struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	for _, m := range c.Messages() {
		if strings.Contains(string(m), `"method":"`+method+`"`) {
			_ = json.Unmarshal(m, &last)
		}
	}
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, last.ID, member)
	if _, err := c.Send(context.Background(), transports.Message{Body: body}); err != nil {
		c.t.Fatal(err)
	}
	return string(last.Params)
}

// askingTools is a server whose tools ask the client.
func askingTools(s func() *server.MCPServer) map[string]handler {
	return map[string]handler{
		"sample": func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r, err := s().RequestSampling(ctx, mcp.CreateMessageRequest{CreateMessageParams: mcp.CreateMessageParams{
				MaxTokens: 7, Messages: []mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.NewTextContent("why?")}}}})
			if err != nil {
				return nil, err
			}
			return text(r.Model + " says " + r.Content.(mcp.TextContent).Text)
		},
		"elicit": func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r, err := s().RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{Message: "who?",
				RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}})
			if err != nil {
				return nil, err
			}
			return text(fmt.Sprint(r.Action, r.Content))
		},
		"roots": func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			r, err := s().RequestRoots(ctx, mcp.ListRootsRequest{})
			if err != nil {
				return nil, err
			}
			return text(fmt.Sprint(r.Roots))
		},
	}
}

// TestRequestsToTheClient: sampling, elicitation and roots reach the client, and its answers the server.
func TestRequestsToTheClient(t *testing.T) {
	var s *server.MCPServer
	s = newServer(askingTools(func() *server.MCPServer { return s }))
	for _, c := range []struct{ tool, method, member, params, want string }{
		{"sample", "sampling/createMessage",
			`"result":{"role":"assistant","model":"m1","content":{"type":"text","text":"because"}}`,
			`"why?"`, "m1 says because"},
		{"elicit", "elicitation/create", `"result":{"action":"accept","content":{"name":"me"}}`, `"who?"`, "accept"},
		{"roots", "roots/list", `"result":{"roots":[{"uri":"file:///r","name":"r"}]}`, "", "file:///r"},
		{"sample", "sampling/createMessage", `"error":{"code":-1,"message":"not today"}`, "", "not today"},
		{"elicit", "elicitation/create", `"result":7`, "", "cannot be read"},
		{"roots", "roots/list", `"nothing":1,"result":null`, "", "neither a result nor an error"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			cn := dial(t, inprocess.New(mcpgo.Serve(s)))
			cn.handshakeAs(able)
			id := cn.send("tools/call", `{"name":"`+c.tool+`"}`)
			if c.want == "neither a result nor an error" {
				cn.waitFor(1, "roots/list")
				cn.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%d}`, id))
				cn.waitFor(1, "notifications/cancelled") // the client hears it too
				return
			}
			if got := cn.answerServerRequest(1, c.method, c.member); !strings.Contains(got, c.params) {
				t.Errorf("asked with %s", got)
			}
			cn.waitFor(1, c.want)
		})
	}
	t.Run("undeclared", func(t *testing.T) {
		cn := dial(t, inprocess.New(mcpgo.Serve(s)))
		cn.handshakeAs(`{}`)
		for i, tool := range []string{"sample", "elicit", "roots"} {
			cn.send("tools/call", `{"name":"`+tool+`"}`)
			cn.waitFor(i+1, "not declared")
		}
	})
	t.Run("the end", func(t *testing.T) {
		cn := dial(t, inprocess.New(mcpgo.Serve(s)))
		cn.handshakeAs(able)
		cn.send("tools/call", `{"name":"elicit"}`)
		cn.waitFor(1, "elicitation/create") // and the connection is closed
	})
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`

// TestModernEra: discovery, a call, an answer that asks for input, and subscriptions.
func TestModernEra(t *testing.T) {
	s := server.NewMCPServer("s", "1", server.WithToolCapabilities(true), server.WithPromptCapabilities(true),
		server.WithResourceCapabilities(true, true))
	s.AddTool(mcp.NewTool("ask"), func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if answer := server.ElicitationResponse(r.Params.InputResponses, "q"); answer != nil {
			return text(fmt.Sprint("got ", answer.Action))
		}
		return server.NewInputRequestBuilder("state-1").Elicit("q", mcp.ElicitationParams{Message: "sure?",
			RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}}).ToolResult(), nil
	})
	c := dial(t, inprocess.New(mcpgo.Serve(s)))
	if got := c.call("server/discover", `{`+meta+`}`); !strings.Contains(got, "2026-07-28") {
		t.Fatalf("server/discover: %s", got)
	}
	if got := c.call("tools/list", `{`+meta+`}`); !strings.Contains(got, `"ask"`) {
		t.Errorf("tools/list: %s", got)
	}
	got := c.call("tools/call", `{"name":"ask",`+meta+`}`)
	if !strings.Contains(got, `"input_required"`) || !strings.Contains(got, "state-1") || !strings.Contains(got, "sure?") {
		t.Errorf("tools/call: %s", got)
	}
	got = c.call("tools/call", `{"name":"ask","requestState":"state-1",`+
		`"inputResponses":{"q":{"method":"elicitation/create","result":{"action":"accept"},"action":"accept"}},`+meta+`}`)
	if !strings.Contains(got, "got accept") {
		t.Errorf("the second round: %s", got)
	}

	// Nothing that was not asked for.
	s.AddTool(mcp.NewTool("early"), nil)
	tools := c.send("subscriptions/listen", `{"notifications":{"toolsListChanged":true},`+meta+`}`)
	others := c.send("subscriptions/listen", `{"notifications":{"promptsListChanged":true,`+
		`"resourceSubscriptions":["file:///a"]},`+meta+`}`)
	c.waitFor(2, "notifications/subscriptions/acknowledged")
	if n := c.count("list_changed"); n != 0 {
		t.Errorf("%d notifications that nobody asked for", n)
	}
	s.AddTool(mcp.NewTool("late"), nil)
	s.AddPrompt(mcp.NewPrompt("p"), nil)
	s.AddTool(mcp.NewTool("update"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(""), s.SendNotificationToClient(ctx, "notifications/resources/updated",
			map[string]any{"uri": r.GetString("uri", "")})
	})
	updated := func(uri string) { c.call("tools/call", `{"name":"update","arguments":{"uri":"`+uri+`"},`+meta+`}`) }
	updated("file:///b")
	updated("file:///a")
	tagged := func(id int64, what string) string {
		return fmt.Sprintf(`"method":"notifications/%s","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%d}`,
			what, id)
	}
	c.waitFor(1, tagged(tools, "tools/list_changed"))
	c.waitFor(1, tagged(others, "prompts/list_changed"))
	c.waitFor(1, tagged(others, "resources/updated"))
	if n := c.count("file:///b") + c.count(tagged(tools, "prompts")) + c.count(tagged(others, "tools")); n != 0 {
		t.Errorf("%d notifications of others", n)
	}

	// A cancellation ends one of them.
	c.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%d}`, tools))
	c.Answer(t, bound, tools)
	before := c.count(tagged(tools, "tools/list_changed"))
	s.AddTool(mcp.NewTool("later"), nil)
	s.AddPrompt(mcp.NewPrompt("p2"), nil)
	c.waitFor(2, tagged(others, "prompts/list_changed"))
	if n := c.count(tagged(tools, "tools/list_changed")); n != before {
		t.Errorf("%d notifications after the end of the subscription", n-before)
	}
}
