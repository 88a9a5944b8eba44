package gosdk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

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

func textResult(format string, args ...any) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}, nil, nil
}

type noArguments struct{}

// TestRequestsToTheClient: sampling, elicitation and roots reach the client, and its answers the server.
func TestRequestsToTheClient(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
	add := func(name string, f func(context.Context, *mcp.ServerSession) (string, error)) {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, _ noArguments) (
			*mcp.CallToolResult, any, error) {
			text, err := f(ctx, r.Session)
			if err != nil {
				return nil, nil, err
			}
			return textResult("%s", text)
		})
	}
	add("sample", func(ctx context.Context, session *mcp.ServerSession) (string, error) {
		r, err := session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 7,
			Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "why?"}}}})
		if err != nil {
			return "", err
		}
		return r.Model + " says " + r.Content.(*mcp.TextContent).Text, nil
	})
	add("elicit", func(ctx context.Context, session *mcp.ServerSession) (string, error) {
		r, err := session.Elicit(ctx, &mcp.ElicitParams{Message: "who?"})
		if err != nil {
			return "", err
		}
		return "they " + r.Action, nil
	})
	add("roots", func(ctx context.Context, session *mcp.ServerSession) (string, error) {
		r, err := session.ListRoots(ctx, nil)
		if err != nil {
			return "", err
		}
		return r.Roots[0].URI, nil
	})
	tr := inprocess.New(gosdk.Serve(s))
	for _, c := range []struct{ tool, method, member, params, want string }{
		{"sample", "sampling/createMessage",
			`"result":{"role":"assistant","model":"m1","content":{"type":"text","text":"because"}}`,
			`"why?"`, "m1 says because"},
		{"elicit", "elicitation/create", `"result":{"action":"accept","content":{}}`, `"who?"`, "they accept"},
		{"roots", "roots/list", `"result":{"roots":[{"uri":"file:///r","name":"r"}]}`, "", "file:///r"},
		{"sample", "sampling/createMessage", `"error":{"code":-1,"message":"not today"}`, "", "not today"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			cn := dial(t, tr)
			cn.call("initialize", `{"protocolVersion":"2025-11-25","capabilities":`+
				`{"sampling":{},"elicitation":{},"roots":{}},"clientInfo":{"name":"test","version":"1"}}`)
			cn.notify("notifications/initialized", `{}`)
			cn.send("tools/call", `{"name":"`+c.tool+`","arguments":{}}`)
			if got := cn.answerServerRequest(1, c.method, c.member); !strings.Contains(got, c.params) {
				t.Errorf("asked with %s", got)
			}
			cn.waitFor(1, c.want)
		})
	}
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
	`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
	`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`

// TestModernEra: discovery, a call, an answer that asks for input, and subscriptions.
func TestModernEra(t *testing.T) {
	s := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	s.AddTool(&mcp.Tool{Name: "ask", InputSchema: map[string]any{"type": "object"}},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			out, _, err := textResult("got %v", len(r.Params.InputResponses))
			if len(r.Params.InputResponses) > 0 {
				return out, err
			}
			return &mcp.CallToolResult{
				InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Message: "sure?"}}, RequestState: "state-1"}, nil
		})
	s.AddResource(&mcp.Resource{Name: "a", URI: "file:///a"}, nil)
	c := dial(t, inprocess.New(gosdk.Serve(s)))
	if got := c.call("server/discover", `{`+meta+`}`); !strings.Contains(got, "2026-07-28") {
		t.Fatalf("server/discover: %s", got)
	}
	if got := c.call("tools/list", `{`+meta+`}`); !strings.Contains(got, `"ask"`) {
		t.Errorf("tools/list: %s", got)
	}
	got := c.call("tools/call", `{"name":"ask","arguments":{},`+meta+`}`)
	if !strings.Contains(got, `"input_required"`) || !strings.Contains(got, "state-1") || !strings.Contains(got, "sure?") {
		t.Errorf("tools/call: %s", got)
	}
	got = c.call("tools/call", `{"name":"ask","arguments":{},"requestState":"state-1",`+
		`"inputResponses":{"q":{"action":"accept"}},`+meta+`}`)
	if !strings.Contains(got, "got 1") {
		t.Errorf("the second round: %s", got)
	}
	listen := c.send("subscriptions/listen", `{"notifications":{"toolsListChanged":true,`+
		`"resourceSubscriptions":["file:///a"]},`+meta+`}`)
	c.waitFor(1, "notifications/subscriptions/acknowledged")
	s.AddTool(&mcp.Tool{Name: "late", InputSchema: map[string]any{"type": "object"}}, nil)
	c.waitFor(1, "tools/list_changed")
	if err := s.ResourceUpdated(t.Context(), &mcp.ResourceUpdatedNotificationParams{URI: "file:///a"}); err != nil {
		t.Error(err)
	}
	c.waitFor(1, "resources/updated")
	c.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%d}`, listen))
	c.waitFor(1, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, listen)) // a result or an error, and the subscription is over
	before := c.count("list_changed")
	s.AddTool(&mcp.Tool{Name: "later", InputSchema: map[string]any{"type": "object"}}, nil)
	c.call("tools/list", `{`+meta+`}`)
	if n := c.count("list_changed"); n != before {
		t.Errorf("%d notifications after the end of the subscription", n-before)
	}
}
