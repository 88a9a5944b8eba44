package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// asking is a server of the SDK whose tools ask the client, and say what they got.
func asking() func(context.Context, inprocess.Peer) error {
	s := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
	add := func(name string, ask func(context.Context, *mcp.ServerSession) (any, error)) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}},
			func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				got, err := ask(ctx, r.Session)
				if err != nil {
					return nil, err
				}
				text, err := json.Marshal(got)
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, err
			})
	}
	add("elicit", func(ctx context.Context, c *mcp.ServerSession) (any, error) {
		r, err := c.Elicit(ctx, &mcp.ElicitParams{Message: "who?", RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","default":30}}}`)})
		if err != nil {
			return nil, err
		}
		return r.Content, nil
	})
	add("sample", func(ctx context.Context, c *mcp.ServerSession) (any, error) {
		r, err := c.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 7})
		if err != nil {
			return nil, err
		}
		return r.Model, nil
	})
	add("roots", func(ctx context.Context, c *mcp.ServerSession) (any, error) {
		r, err := c.ListRoots(ctx, nil)
		if err != nil {
			return nil, err
		}
		return r.Roots[0].URI, nil
	})
	return gosdk.Serve(s)
}

func startAsking(t *testing.T, cfg supervisor.Config) *supervisor.Manager {
	t.Helper()
	cfg.InProcess = map[string]func(context.Context, inprocess.Peer) error{"a": asking()}
	cfg.Servers = map[string]supervisor.Spec{"a": {Type: messages.SDK, Era: messages.EraLegacy}}
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, m) })
	settled(t, m)
	return m
}

// TestServersAskTheProgram: a question reaches the program's function with the name of who asks, and the answer the
// server; a form is completed with its defaults.
func TestServersAskTheProgram(t *testing.T) {
	seeds.Shows(t, "004.f.sampling")
	m := startAsking(t, supervisor.Config{
		Elicit: func(_ context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			content := fmt.Appendf(nil, `{"name":"%s asks %s"}`, r.Server, r.Message)
			return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: content}, nil
		},
		Sample: func(_ context.Context, r supervisor.SampleRequest) (json.RawMessage, error) {
			result := `{"role":"assistant","model":"for %s","content":{"type":"text","text":"yes"}}`
			return fmt.Appendf(nil, result, r.Server), nil
		},
		Roots: func(_ context.Context, server string) ([]supervisor.Root, error) {
			return []supervisor.Root{{URI: "file:///" + server}}, nil
		},
	})
	for tool, want := range map[string]string{
		"elicit": `{"age":30,"name":"a asks who?"}`, "sample": `"for a"`, "roots": `"file:///a"`,
	} {
		res, err := m.CallServerTool(t.Context(), "a", tool, nil)
		if err != nil || res.Text() != want {
			t.Errorf("%s: %v, %v, want %s", tool, res, err, want)
		}
	}
}

// TestWhatNobodyAnswersIsRefused: without a function the capability is not announced, and a function's error costs the
// server its answer and nothing else.
func TestWhatNobodyAnswersIsRefused(t *testing.T) {
	m := startAsking(t, supervisor.Config{
		Sample: func(context.Context, supervisor.SampleRequest) (json.RawMessage, error) {
			return nil, errors.New("a canary that no server may see")
		},
	})
	for _, tool := range []string{"elicit", "sample", "roots"} {
		res, err := m.CallServerTool(t.Context(), "a", tool, nil)
		var e *supervisor.Error
		if !errors.As(err, &e) || e.Outcome != messages.OutcomeRejected {
			t.Errorf("%s: %v, %v", tool, res, err)
		} else if strings.Contains(e.Text+string(e.Data), "canary") {
			t.Errorf("%s: %v", tool, e)
		}
	}
	if !m.Server("a").IsConnected() {
		t.Error("the server is not connected any more")
	}
}

// TestAPersonIsNotAskedTwice guards a defect: in the legacy era, where a question of a server says nothing of the request that it
// is about, a request whose connection was lost was sent again although a person had answered for it. A read and the call of a
// trusted server's tool that only reads are held to the same rule.
func TestAPersonIsNotAskedTwice(t *testing.T) {
	for _, c := range []struct{ asks, calls, samples bool }{
		{true, false, false}, {false, false, false}, {true, true, false}, {false, true, false}, {true, true, true},
	} {
		asks := c.asks
		t.Run(fmt.Sprintf("asks %v, a tool %v, the model %v", asks, c.calls, c.samples), func(t *testing.T) {
			var reads, questions atomic.Int32
			var mu sync.Mutex
			var die context.CancelFunc
			s := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, nil)
			// The first request of either kind may ask, and is lost with its connection.
			answer := func(ctx context.Context, client *mcp.ServerSession) error {
				if reads.Add(1) > 1 {
					return nil
				}
				if c.samples {
					if _, err := client.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1}); err != nil {
						t.Error(err)
					}
				} else if asks {
					_, err := client.Elicit(ctx, &mcp.ElicitParams{Message: "may it?",
						RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
					if err != nil {
						t.Error(err)
					}
				}
				mu.Lock()
				die()
				mu.Unlock()
				<-ctx.Done()
				return ctx.Err()
			}
			s.AddResource(&mcp.Resource{URI: "x:///1", Name: "one"},
				func(ctx context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
					return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "x:///1", Text: "again"}}}, answer(ctx, r.Session)
				})
			s.AddTool(&mcp.Tool{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`), Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
				func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "again"}}}, answer(ctx, r.Session)
				})
			serve := gosdk.Serve(s)
			m, err := supervisor.Start(t.Context(), supervisor.Config{
				InProcess: map[string]func(context.Context, inprocess.Peer) error{
					"a": func(ctx context.Context, p inprocess.Peer) error {
						ctx, cancel := context.WithCancel(ctx)
						defer cancel()
						mu.Lock()
						die = cancel
						mu.Unlock()
						return serve(ctx, p)
					},
				},
				Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, Era: messages.EraLegacy, Trusted: true}},
				Elicit: func(context.Context, supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
					questions.Add(1)
					return supervisor.ElicitResult{Action: messages.ElicitAccept}, nil
				},
				Sample: func(context.Context, supervisor.SampleRequest) (json.RawMessage, error) {
					questions.Add(1)
					return json.RawMessage(`{"role":"assistant","model":"m","content":{"type":"text","text":"yes"}}`), nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeAll(t, m) })
			settled(t, m)
			if c.calls {
				_, err = m.CallServerTool(t.Context(), "a", "look", nil)
			} else {
				_, err = m.ReadServerResource(t.Context(), "a", "x:///1")
			}
			if asks && (messages.OutcomeOf(err) != messages.OutcomeUnknown || reads.Load() != 1 || questions.Load() != 1) {
				t.Errorf("%v after %d reads and %d questions, want unknown, 1 and 1", err, reads.Load(), questions.Load())
			}
			if !asks && (err != nil || reads.Load() != 2) {
				t.Errorf("%v after %d reads, want 2", err, reads.Load())
			}
		})
	}
}
