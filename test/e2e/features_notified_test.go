package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"time"

	mcpgosdk "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// newNotifiedServer is a server of the Go SDK that shows what it is told: its tool wait ends when its call is cancelled, and
// cancelled says how often that has happened. lists counts the requests for its prompts.
func newNotifiedServer(ttl time.Duration, lists *atomic.Int64) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "telling", Version: "1"}, &mcp.ServerOptions{
		PageSize: 2, Instructions: "Wait, and be told.",
	})
	var cancelled atomic.Int64
	text := func(text string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	type none struct{}
	mcp.AddTool(s, &mcp.Tool{Name: "wait"}, func(ctx context.Context, r *mcp.CallToolRequest, _ none) (
		*mcp.CallToolResult, any, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "waiting",
		}) // a client that went away is what it waits for
		select {
		case <-ctx.Done():
			cancelled.Add(1)
			return text("cancelled"), nil, nil
		case <-time.After(2 * bound): // a server that is never told must not keep its test
			return text("waited long enough"), nil, nil
		}
	})
	mcp.AddTool(s, &mcp.Tool{Name: "cancelled"}, func(context.Context, *mcp.CallToolRequest, none) (
		*mcp.CallToolResult, any, error) {
		return text(fmt.Sprint(cancelled.Load())), nil, nil
	})
	s.AddTool(&mcp.Tool{Name: "exact", InputSchema: json.RawMessage(`{"type":"object"}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: r.Params.Arguments}, nil
		})
	s.AddTool(&mcp.Tool{Name: "cuts", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if r.Extra != nil && r.Extra.CloseSSEStream != nil {
				r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
			}
			time.Sleep(100 * time.Millisecond)
			return text("after the cut"), nil
		})
	for _, name := range []string{"one", "two", "three", "four", "five"} {
		s.AddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{}}, nil
		})
	}
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			res, err := next(ctx, method, r)
			if list, ok := res.(*mcp.ListPromptsResult); ok && err == nil {
				lists.Add(1)
				list.TTLMs, list.CacheScope = int(ttl.Milliseconds()), "private"
			}
			return res, err
		}
	})
	return s
}

const notifiedRole = "e2e-telling"

func init() {
	roles[notifiedRole] = func([]string) int {
		if newNotifiedServer(0, new(atomic.Int64)).Run(context.Background(), &mcp.StdioTransport{}) != nil {
			return 1
		}
		return 0
	}
}

// serveOverHTTP serves the telling server as the Go SDK does, and ends it with the test.
func serveOverHTTP(t *testing.T, ttl time.Duration, lists *atomic.Int64, options *mcp.StreamableHTTPOptions) string {
	t.Helper()
	s := newNotifiedServer(ttl, lists)
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, options))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL
}

// A cancelled context tells the server, in both eras: by notifications/cancelled, or by the end of the response's stream.
func TestCancellationReachesTheServer(t *testing.T) {
	checkLeaks(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var lists atomic.Int64
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"stdio-modern": {Command: self, Args: []string{notifiedRole}, Era: messages.EraModern},
		"stdio-legacy": {Command: self, Args: []string{notifiedRole}, Era: messages.EraLegacy},
		"http-modern": {URL: serveOverHTTP(t, 0, &lists, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true}),
			Era: messages.EraModern},
		"http-legacy": {URL: serveOverHTTP(t, 0, &lists, nil), Era: messages.EraLegacy},
	}})
	for _, server := range []string{"stdio-modern", "stdio-legacy", "http-modern", "http-legacy"} {
		t.Run(server, func(t *testing.T) {
			awaitConnected(t, m, server)
			before := mustCall(t, m, server, "cancelled", nil).Text()
			checkAbandonedCall(t, m, server, "wait", nil)
			eventually(t, "the server is told", func() bool {
				return mustCall(t, m, server, "cancelled", nil).Text() != before
			})
			if st := statusOf(t, m, server); st.Status != messages.Connected || st.Restarts != 0 {
				t.Errorf("the connection is %s, %d restarts", st.Status, st.Restarts)
			}
			// So does the end of a call's own time.
			before = mustCall(t, m, server, "cancelled", nil).Text()
			ctx := newCallTime(t)
			defer ctx.endLate()()
			if _, err := m.CallServerTool(ctx, server, "wait", nil, supervisor.WithProgress(func(supervisor.Progress) { ctx.end() })); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a call whose time was over: %v", err)
			}
			eventually(t, "the server is told again", func() bool {
				return mustCall(t, m, server, "cancelled", nil).Text() != before
			})
		})
	}
}

// ttlMs: a list is asked for again when the server says that it is no longer valid, and not before. Its pages are all
// there.
func TestTTLAListIsKeptAsLongAsTheServerSays(t *testing.T) {
	checkLeaks(t)
	var kept, stale atomic.Int64
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"kept":  {URL: serveOverHTTP(t, time.Hour, &kept, &mcp.StreamableHTTPOptions{Stateless: true}), Era: messages.EraModern},
		"stale": {URL: serveOverHTTP(t, 0, &stale, &mcp.StreamableHTTPOptions{Stateless: true}), Era: messages.EraModern},
	}})
	awaitConnected(t, m, "kept", "stale")
	pages := func(server string, count *atomic.Int64) int64 {
		before := count.Load()
		if all, err := m.Prompts(testContext(t, bound), server); err != nil || len(all) != 5 {
			t.Errorf("%s: %d prompts, %v", server, len(all), err)
		}
		return count.Load() - before
	}
	for range 5 {
		pages("kept", &kept)
		if anew := pages("stale", &stale); anew != 3 { // there are three pages
			t.Errorf("%d pages were asked for of a list that is not valid for any time", anew)
		}
	}
	// What was read before the stream of changes was open may be old, and is read once more.
	if n := kept.Load(); n != 3 && n != 6 {
		t.Errorf("%d pages of the list that is valid for an hour were asked for", n)
	}
}

// Structured content is the server's own bytes, compared with what the tool promises.
func TestStructuredOutputIsExactAndCompared(t *testing.T) {
	checkLeaks(t)
	var lists atomic.Int64
	m := startManager(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{
			"http": {URL: serveOverHTTP(t, 0, &lists, &mcp.StreamableHTTPOptions{Stateless: true})},
			"sdk":  {Type: messages.SDK},
		},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"sdk": gosdk.Serve(newNotifiedServer(0, &lists))},
	})
	for _, server := range []string{"http", "sdk"} {
		awaitConnected(t, m, server)
		res := mustCall(t, m, server, "exact", json.RawMessage(`{"n":9007199254740993,"more":[null,{"ä":1e3}]}`))
		if got := string(res.Structured()); got != `{"n":9007199254740993,"more":[null,{"ä":1e3}]}` || res.Flaw() != "" {
			t.Errorf("%s: %s, flaw %q", server, got, res.Flaw())
		}
		res = mustCall(t, m, server, "exact", object{"n": "seven"})
		if res.IsError || !containsWords(res.Flaw(), "n") {
			t.Errorf("%s: %s, flaw %q", server, res.Raw, res.Flaw())
		}
	}
}

// Resumption: a server with sessions may close the stream of a call, and the client fetches the rest by Last-Event-ID.
func TestResumptionOfAStreamThatTheServerClosed(t *testing.T) {
	checkLeaks(t)
	var lists atomic.Int64
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"http": {URL: serveOverHTTP(t, 0, &lists, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}),
			Era: messages.EraLegacy},
	}})
	awaitConnected(t, m, "http")
	for range 3 {
		checkText(t, m, "http", "cuts", nil, "after the cut")
	}
}

// The same in process, by a third library: mark3labs/mcp-go.
func TestMCPGoServerInProcess(t *testing.T) {
	checkLeaks(t)
	s := mcpgoserver.NewMCPServer("mcp-go", "1", mcpgoserver.WithResourceCapabilities(true, true),
		mcpgoserver.WithPromptCapabilities(true), mcpgoserver.WithInstructions("Be brief."),
		mcpgoserver.WithPaginationLimit(2))
	for _, uri := range []string{"mem:a", "mem:b", "mem:c"} {
		s.AddResource(mcpgosdk.NewResource(uri, uri), func(context.Context, mcpgosdk.ReadResourceRequest) (
			[]mcpgosdk.ResourceContents, error) {
			return []mcpgosdk.ResourceContents{mcpgosdk.TextResourceContents{URI: uri, Text: "it is " + uri}}, nil
		})
	}
	s.AddPrompt(mcpgosdk.NewPrompt("greet", mcpgosdk.WithArgument("who")), func(_ context.Context,
		r mcpgosdk.GetPromptRequest) (*mcpgosdk.GetPromptResult, error) {
		return mcpgosdk.NewGetPromptResult("", []mcpgosdk.PromptMessage{mcpgosdk.NewPromptMessage(mcpgosdk.RoleUser,
			mcpgosdk.NewTextContent("hello "+r.Params.Arguments["who"]))}), nil
	})
	m := startManager(t, supervisor.Config{
		Servers:   map[string]supervisor.Spec{"mcpgo": {Type: messages.SDK}},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"mcpgo": mcpgo.Serve(s)},
	})
	awaitConnected(t, m, "mcpgo")
	if st := statusOf(t, m, "mcpgo"); st.Instructions != "Be brief." {
		t.Errorf("instructions %q", st.Instructions)
	}
	if all, err := m.Resources(testContext(t, bound)); err != nil || len(all) != 3 {
		t.Errorf("%d resources on two pages, %v", len(all), err)
	}
	res, err := m.ReadResource(testContext(t, bound), "mem:b")
	if err != nil || res.Text() != "it is mem:b" || res.Server != "mcpgo" {
		t.Errorf("%+v, %v", res, err)
	}
	got, err := m.GetPrompt(testContext(t, bound), "mcp__mcpgo__greet", map[string]string{"who": "you"})
	if err != nil || got.Messages()[0].Content.Text != "hello you" {
		t.Errorf("%+v, %v", got, err)
	}
	s.AddPrompt(mcpgosdk.NewPrompt("more"), nil)
	eventually(t, "the new prompt is there", func() bool {
		all, err := m.Prompts(testContext(t, bound), "mcpgo")
		return err == nil && len(all) == 2
	})
	checkPing(t, m, "mcpgo")
}
