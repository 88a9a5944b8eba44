package peer_test

import (
	"context"
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	mcpgo "github.com/mark3labs/mcp-go/client/transport"
	mcpgotypes "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// These tests let three clients that have nothing to do with the machine talk to it: a server that only its own tests
// understand proves nothing.

var eras = []messages.Era{messages.EraLegacy, messages.EraModern}

func TestTheGoSDKUnderstandsIt(t *testing.T) {
	for _, era := range eras {
		t.Run(string(era), func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			s, in, out := newPipedShell(t, era)
			changed := make(chan struct{}, 8)
			c := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
				ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
			})
			cs, err := c.Connect(ctx, &mcp.IOTransport{Reader: in, Writer: out}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			if v := cs.InitializeResult().ProtocolVersion; (v == "2026-07-28") != (era == messages.EraModern) {
				t.Errorf("agreed on version %s", v)
			}
			names := func() (names []string) {
				for tool, err := range cs.Tools(ctx, nil) {
					if err != nil {
						t.Fatal(err)
					}
					names = append(names, tool.Name)
				}
				return names
			}
			if n := names(); len(n) != 7 || n[0] != "read" || n[6] != "tool-6" {
				t.Errorf("listed %v", n)
			}
			r, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "write", Arguments: map[string]any{"call": "c1", "size": 10}})
			if err != nil || r.IsError || len(r.Content) != 1 {
				t.Fatalf("the call: %+v, %v", r, err)
			}
			isResult(t, r.Content[0].(*mcp.TextContent).Text)
			if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "no-such-tool"}); err == nil {
				t.Error("a tool that is not there was called")
			}
			s.change()
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatal("the change was not heard of")
			}
			if n := names(); len(n) != 8 || n[7] != "changed-1" {
				t.Errorf("after the change: %v", n)
			}
		})
	}
}

func TestMcpGoUnderstandsIt(t *testing.T) {
	for _, era := range eras {
		t.Run(string(era), func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			s, in, out := newPipedShell(t, era)
			c := client.NewClient(mcpgo.NewIO(in, out, io.NopCloser(emptyReader{})))
			changed := make(chan struct{}, 8)
			c.OnNotification(func(n mcpgotypes.JSONRPCNotification) {
				if n.Method == "notifications/tools/list_changed" {
					changed <- struct{}{}
				}
			})
			if err := c.Start(ctx); err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			init := mcpgotypes.InitializeRequest{}
			init.Params.ClientInfo = mcpgotypes.Implementation{Name: "test", Version: "1"}
			init.Params.ProtocolVersion = mcpgotypes.LATEST_PROTOCOL_VERSION
			res, err := c.Initialize(ctx, init)
			if err != nil {
				t.Fatal(err)
			}
			if v := res.ProtocolVersion; (v == "2026-07-28") != (era == messages.EraModern) {
				t.Errorf("agreed on version %s", v)
			}
			if era == messages.EraModern {
				stopListening, err := c.ListenAsync(ctx, mcpgotypes.SubscriptionFilter{ToolsListChanged: true}, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer stopListening()
			}
			tools, err := c.ListTools(ctx, mcpgotypes.ListToolsRequest{})
			if err != nil || len(tools.Tools) != 7 {
				t.Fatalf("listed %+v, %v", tools, err)
			}
			call := mcpgotypes.CallToolRequest{}
			call.Params.Name, call.Params.Arguments = "write", map[string]any{"call": "c1", "size": 10}
			r, err := c.CallTool(ctx, call)
			if err != nil || r.IsError || len(r.Content) != 1 {
				t.Fatalf("the call: %+v, %v", r, err)
			}
			isResult(t, r.Content[0].(mcpgotypes.TextContent).Text)
			// The subscription is opened beside: a change before it reaches no client.
			for heard := false; !heard; {
				s.change()
				select {
				case <-changed:
					heard = true
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
					t.Fatal("the change was not heard of")
				}
			}
		})
	}
}

type emptyReader struct{}

func (emptyReader) Read([]byte) (int, error) { return 0, io.EOF }

// isResult checks the text of a call's result.
func isResult(t *testing.T, text string) {
	t.Helper()
	var r struct {
		Call, Server, Tool, Pad string
		Conn, Value             int
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	if r.Call != "c1" || r.Server != "s" || r.Tool != "write" || r.Conn != 1 || r.Value != 1 || r.Pad != "xxxxxxxxxx" {
		t.Errorf("the result is %s", text)
	}
}

func TestOurOwnSessionUnderstandsIt(t *testing.T) {
	for _, era := range eras {
		t.Run(string(era), func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			changed := make(chan struct{}, 8)
			w := &wire{era: era}
			s, err := session.Dial(ctx, w, session.Config{OnToolsChanged: func() { changed <- struct{}{} }})
			if err != nil {
				t.Fatal(err)
			}
			info, err := s.Handshake(ctx)
			if err != nil || info.Era != era || !info.Capabilities.Tools || info.ServerInfo.Name != "chaos s" {
				t.Fatalf("the handshake: %+v, %v", info, err)
			}
			list, err := s.ListTools(ctx)
			if err != nil || len(list.Tools) != 7 || len(list.Quarantined) != 0 {
				t.Fatalf("listed %+v, %v", list, err)
			}
			a := list.Tools[0].Annotations
			if a == nil || a.ReadOnly == nil || !*a.ReadOnly || list.Tools[0].Name != "read" {
				t.Errorf("read is %+v", list.Tools[0])
			}
			gate := s.OpenGate()
			r, err := gate.Call(ctx, "write", json.RawMessage(`{"call":"c1","size":10}`))
			if err != nil || r.IsError {
				t.Fatalf("the call: %+v, %v", r, err)
			}
			var result struct{ Content []struct{ Text string } }
			if err := json.Unmarshal(r.Raw, &result); err != nil || len(result.Content) != 1 {
				t.Fatal(string(r.Raw), err)
			}
			isResult(t, result.Content[0].Text)
			if _, err := gate.Call(ctx, "no-such-tool", nil); messages.OutcomeOf(err) != messages.OutcomeRejected {
				t.Errorf("a tool that is not there: %v", err)
			}
			for heard := false; !heard; {
				w.shell.change()
				select {
				case <-changed:
					heard = true
				case <-time.After(10 * time.Millisecond): // the subscription of the modern era is opened beside
				case <-ctx.Done():
					t.Fatal("the change was not heard of")
				}
			}
			if list, err = s.ListTools(ctx); err != nil || len(list.Tools) != 8 {
				t.Errorf("after the change: %+v, %v", list, err)
			}
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
			<-s.Released()
		})
	}
}
