package web_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// The servers of both SDKs, as peers that this project has not written. They offer the same: echo answers with its argument,
// grow adds a tool, slow answers when the channel is closed.

func mcpgoServer(slow <-chan struct{}) *server.MCPServer {
	s := server.NewMCPServer("mcp-go", "1", server.WithToolCapabilities(true), server.WithLogging())
	s.AddTool(mcp.NewTool("echo", mcp.WithString("text")), func(_ context.Context, r mcp.CallToolRequest) (
		*mcp.CallToolResult, error) {
		return mcp.NewToolResultText(r.GetString("text", "")), nil
	})
	s.AddTool(mcp.NewTool("grow"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddTool(mcp.NewTool("grown"), nil)
		return mcp.NewToolResultText("grown"), nil
	})
	s.AddTool(mcp.NewTool("slow"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := s.SendNotificationToClient(ctx, "notifications/slow", nil); err != nil {
			return nil, err
		}
		select {
		case <-slow:
		case <-ctx.Done():
		}
		return mcp.NewToolResultText("slow"), nil
	})
	return s
}

type (
	nothing struct{}
	texts   struct {
		Text string `json:"text"`
	}
)

func sdkServer(slow <-chan struct{}) *sdk.Server {
	text := func(s string) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}, nil, nil
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "go-sdk", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "echo"}, func(_ context.Context, _ *sdk.CallToolRequest, in texts) (
		*sdk.CallToolResult, any, error) {
		return text(in.Text)
	})
	sdk.AddTool(s, &sdk.Tool{Name: "grow"}, func(context.Context, *sdk.CallToolRequest, nothing) (
		*sdk.CallToolResult, any, error) {
		sdk.AddTool(s, &sdk.Tool{Name: "grown"}, func(context.Context, *sdk.CallToolRequest, nothing) (
			*sdk.CallToolResult, any, error) {
			return text("")
		})
		return text("grown")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "slow"}, func(ctx context.Context, r *sdk.CallToolRequest, _ nothing) (
		*sdk.CallToolResult, any, error) {
		err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: "slow", Progress: 1})
		if err != nil {
			return nil, nil, err
		}
		select {
		case <-slow:
		case <-ctx.Done():
		}
		return text("slow")
	})
	return s
}

// sdkPeers is every way in which both SDKs can be reached. A nil slow never ends the tool of that name.
func sdkPeers(t *testing.T, slow chan struct{}) map[string]transports.Transport {
	serve := func(h http.Handler) string { return conntest.Serve(t, h.ServeHTTP).URL }
	sdkStreamable := func(o *sdk.StreamableHTTPOptions) string {
		s := sdkServer(slow)
		return serve(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o))
	}
	mcpgoSSE := serve(server.NewSSEServer(mcpgoServer(slow)))
	sdkOlder := sdkServer(slow)
	sdkSSE := serve(sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return sdkOlder }, nil))
	mcpgoStreamable := serve(server.NewStreamableHTTPServer(mcpgoServer(slow), server.WithStateful(true)))
	sdkJSON := sdkStreamable(&sdk.StreamableHTTPOptions{JSONResponse: true})
	older := func(url string) web.Config {
		c := conntest.ConfigWithSecrets(t, url+"?key="+conntest.Canary)
		c.FallbackSSE = true
		return c
	}
	return map[string]transports.Transport{
		"mcp-go streamable":           web.NewHTTP(conntest.ConfigWithSecrets(t, mcpgoStreamable)),
		"go-sdk streamable":           web.NewHTTP(conntest.ConfigWithSecrets(t, sdkStreamable(nil))),
		"go-sdk streamable with JSON": web.NewHTTP(conntest.ConfigWithSecrets(t, sdkJSON)),
		"mcp-go SSE":                  web.NewSSE(older(mcpgoSSE + "/sse")),
		"go-sdk SSE":                  web.NewSSE(older(sdkSSE)),
		"mcp-go SSE as fall-back":     web.NewHTTP(older(mcpgoSSE + "/sse")),
		"go-sdk SSE as fall-back":     web.NewHTTP(older(sdkSSE)),
		"mcp-go in process":           inprocess.New(mcpgo.Serve(mcpgoServer(slow))),
		"go-sdk in process":           inprocess.New(gosdk.Serve(sdkServer(slow))),
	}
}

func callTool(name, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s,"_meta":{"progressToken":"slow"}}`, name, arguments)
}

func TestServersOfTheSDKs(t *testing.T) {
	seeds.Shows(t, "001.7.library")
	slow := make(chan struct{})
	peers := sdkPeers(t, slow)
	// The go-sdk answers DELETE, and ends, only after its tools have: it is a silent DELETE (H10), too.
	t.Cleanup(func() { close(slow) })
	for name, tr := range peers {
		t.Run(name, func(t *testing.T) {
			c := conntest.Dial(t, tr)
			c.Handshake()
			if got := c.Call("tools/list", `{}`); !strings.Contains(got, `"echo"`) {
				t.Fatalf("tools/list: %s", got)
			}
			var wg sync.WaitGroup
			for i := range 20 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					want := fmt.Sprintf("text %d", i)
					if got := c.Call("tools/call", callTool("echo", `{"text":"`+want+`"}`)); !strings.Contains(got, `"`+want+`"`) {
						t.Errorf("echo of %s: %s", want, got)
					}
				}()
			}
			wg.Wait()
			c.Call("ping", `{}`)
			c.Call("tools/call", callTool("grow", `{}`))
			c.WaitFor(1, "notifications/tools/list_changed")
			if got := c.Call("tools/list", `{}`); !strings.Contains(got, `"grown"`) {
				t.Errorf("tools/list after the change: %s", got)
			}
			// Close while a call runs.
			done := make(chan *transports.Error, 1)
			go func() {
				_, _, err := c.TrySend(context.Background(), "tools/call", callTool("slow", `{}`))
				done <- err
			}()
			if !strings.Contains(name, "JSON") { // which has nothing to carry a notification
				c.WaitFor(1, "slow")
			}
			c.CloseChecked()
			if err := <-done; err != nil && err.Class != messages.ClassCanceled {
				t.Errorf("the call that was running: %v", err)
			}
		})
	}
}

// TestSDKServerRestarts: a server that comes back with no memory of its sessions. The connection ends, and a new one
// works.
func TestSDKServerRestarts(t *testing.T) {
	makers := map[string]func() http.Handler{
		"mcp-go": func() http.Handler {
			return server.NewStreamableHTTPServer(mcpgoServer(nil), server.WithStateful(true))
		},
		"go-sdk": func() http.Handler {
			s := sdkServer(nil)
			return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
		},
	}
	for name, start := range makers {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			h := start()
			s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				now := h
				mu.Unlock()
				now.ServeHTTP(w, r)
			})
			tr := web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL))
			c := conntest.Dial(t, tr)
			c.Handshake()
			mu.Lock()
			h = start()
			mu.Unlock()
			_, _, err := c.TrySend(t.Context(), "tools/list", `{}`)
			if err == nil || err.Class != messages.ClassSession {
				t.Fatalf("%v", err)
			}
			c.Wait(t, conntest.Bound, "Down", func() bool { return len(c.Downs()) > 0 })
			second := conntest.Dial(t, tr)
			second.Handshake()
			second.Call("tools/list", `{}`)
		})
	}
}

// TestSDKServerResumes: the network breaks while a call runs, and the answer still comes, once.
func TestSDKServerResumes(t *testing.T) {
	slow := make(chan struct{})
	s := sdkServer(slow)
	site := conntest.Serve(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{EventStore: sdk.NewMemoryEventStore(nil)}).ServeHTTP)
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, site.URL)))
	c.Handshake()
	done := make(chan *transports.Error, 1)
	go func() {
		_, _, err := c.TrySend(context.Background(), "tools/call", callTool("slow", `{}`))
		done <- err
	}()
	c.WaitFor(1, "notifications/progress")
	site.CloseClientConnections()
	close(slow)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := c.Answers(c.NextID.Load()); n != 1 {
		t.Errorf("%d answers", n)
	}
}
