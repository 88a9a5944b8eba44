package gosdk_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

const bound = time.Minute

// client is the other side of a connection under test.
type client struct {
	transports.Conn
	transporttest.Recorder
	t    testing.TB
	next int64
	mu   sync.Mutex
}

func dial(t testing.TB, tr transports.Transport) *client {
	t.Helper()
	c := &client{t: t}
	conn, err := tr.Dial(t.Context(), &c.Recorder)
	if err != nil {
		t.Fatal(err)
	}
	c.Conn = conn
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bound)
		defer cancel()
		if err := conn.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c
}

// send sends a request and returns its id.
func (c *client) send(method, params string) int64 {
	c.t.Helper()
	c.mu.Lock()
	c.next++
	id := c.next
	c.mu.Unlock()
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params)
	if _, err := c.Send(context.Background(), transports.Message{ID: id, Method: method, Body: body}); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return id
}

func (c *client) notify(method, params string) {
	c.t.Helper()
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
	if _, err := c.Send(context.Background(), transports.Message{Method: method, Body: body}); err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
}

func (c *client) call(method, params string) string {
	c.t.Helper()
	return string(c.Answer(c.t, bound, c.send(method, params)))
}

func (c *client) handshake() {
	c.t.Helper()
	got := c.call("initialize",
		`{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
	if !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
		c.t.Fatalf("initialize: %s", got)
	}
	c.Negotiated("2025-11-25")
	c.notify("notifications/initialized", `{}`)
}

// count returns the number of messages that hold text.
func (c *client) count(text string) int {
	n := 0
	for _, m := range c.Messages() {
		if strings.Contains(string(m), text) {
			n++
		}
	}
	return n
}

func (c *client) waitFor(n int, text string) {
	c.t.Helper()
	c.Wait(c.t, bound, fmt.Sprintf("%d messages with %s", n, text), func() bool { return c.count(text) >= n })
}

type noInput struct{}

type handler = mcp.ToolHandlerFor[noInput, any]

func newServer(tools map[string]handler) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for name, h := range tools {
		mcp.AddTool(s, &mcp.Tool{Name: name}, h)
	}
	return s
}

func text(s string) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}, nil, nil
}

func TestCallsRunConcurrently(t *testing.T) {
	const n = 20
	var all sync.WaitGroup
	all.Add(n)
	s := newServer(map[string]handler{
		"meet": func(context.Context, *mcp.CallToolRequest, noInput) (*mcp.CallToolResult, any, error) {
			all.Done()
			all.Wait() // for all the others
			return text("met")
		},
	})
	c := dial(t, inprocess.New(gosdk.Serve(s)))
	c.handshake()
	for range n {
		c.send("tools/call", `{"name":"meet","arguments":{}}`)
	}
	c.waitFor(n, `"met"`)
}

func TestAPanicCostsItsCall(t *testing.T) {
	s := newServer(map[string]handler{
		"boom": func(context.Context, *mcp.CallToolRequest, noInput) (*mcp.CallToolResult, any, error) {
			panic("kaboom")
		},
		"fine": func(context.Context, *mcp.CallToolRequest, noInput) (*mcp.CallToolResult, any, error) {
			return text("fine")
		},
	})
	c := dial(t, inprocess.New(gosdk.Serve(s)))
	c.handshake()
	id := c.send("tools/call", `{"name":"boom","arguments":{}}`)
	c.waitFor(1, "kaboom")
	if n := c.count(fmt.Sprintf(`"id":%d,"error"`, id)); n != 1 {
		t.Errorf("the panic was answered with %d errors: %s", n, c.Messages())
	}
	if got := c.call("tools/call", `{"name":"fine","arguments":{}}`); !strings.Contains(got, "fine") {
		t.Errorf("after the panic: %s", got)
	}
}

func TestToolChangesAreAnnounced(t *testing.T) {
	s := newServer(map[string]handler{})
	mcp.AddTool(s, &mcp.Tool{Name: "one"}, func(context.Context, *mcp.CallToolRequest, noInput) (
		*mcp.CallToolResult, any, error) {
		return text("")
	})
	tr := inprocess.New(gosdk.Serve(s))
	a, b := dial(t, tr), dial(t, tr)
	a.handshake()
	b.handshake()
	a.call("ping", `{}`) // the notification before it has been handled
	b.call("ping", `{}`)
	s.RemoveTools("one")
	a.waitFor(1, "notifications/tools/list_changed")
	b.waitFor(1, "notifications/tools/list_changed")
	if got := a.call("tools/list", `{}`); strings.Contains(got, `"one"`) {
		t.Errorf("tools/list: %s", got)
	}
}

func TestTheEndEndsHandlers(t *testing.T) {
	conntest.CheckLeaks(t)
	ended := make(chan struct{})
	running := make(chan struct{})
	s := newServer(map[string]handler{
		"wait": func(ctx context.Context, _ *mcp.CallToolRequest, _ noInput) (*mcp.CallToolResult, any, error) {
			close(running)
			<-ctx.Done()
			close(ended)
			return text("")
		},
	})
	c := dial(t, inprocess.New(gosdk.Serve(s)))
	c.handshake()
	c.send("tools/call", `{"name":"wait","arguments":{}}`)
	<-running
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	default:
		t.Error("Close returned while a handler was running")
	}
	for range s.Sessions() {
		t.Error("the server still has a session")
	}
}

func TestCancelReachesTheHandler(t *testing.T) {
	running := make(chan struct{})
	ended := make(chan struct{})
	s := newServer(map[string]handler{
		"wait": func(ctx context.Context, _ *mcp.CallToolRequest, _ noInput) (*mcp.CallToolResult, any, error) {
			close(running)
			<-ctx.Done()
			close(ended)
			return text("canceled")
		},
	})
	c := dial(t, inprocess.New(gosdk.Serve(s)))
	c.handshake()
	id := c.send("tools/call", `{"name":"wait","arguments":{}}`)
	<-running
	c.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%d}`, id))
	select {
	case <-ended:
	case <-time.After(bound):
		t.Error("the handler was not told")
	}
}

// BenchmarkIdle shows what one connection costs that has done its handshake and does nothing.
func BenchmarkIdle(b *testing.B) {
	s := newServer(map[string]handler{})
	tr := inprocess.New(gosdk.Serve(s))
	const n = 5000
	for b.Loop() {
		heap, stack := memory()
		conns := make([]transports.Conn, n)
		for i := range conns {
			c := dial(b, tr)
			c.handshake()
			conns[i] = c.Conn
			c.Recorder = transporttest.Recorder{}
		}
		moreHeap, moreStack := memory()
		b.ReportMetric(float64(moreHeap-heap)/n, "heapB/conn")
		b.ReportMetric(float64(moreStack-stack)/n, "stackB/conn")
		for _, c := range conns {
			_ = c.Close(context.Background())
		}
	}
}

func memory() (heap, stack uint64) {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.StackInuse
}
