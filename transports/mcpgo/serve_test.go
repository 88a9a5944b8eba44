package mcpgo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
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
	m := transports.Message{ID: id, Method: method, Body: body}
	if strings.Contains(params, meta) {
		m.Version = "2026-07-28" // as every message of the modern era says
	}
	if _, err := c.Send(context.Background(), m); err != nil {
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

type handler = server.ToolHandlerFunc

func newServer(tools map[string]handler) *server.MCPServer {
	s := server.NewMCPServer("test", "1", server.WithToolCapabilities(true), server.WithLogging())
	for name, h := range tools {
		s.AddTool(mcp.NewTool(name), h)
	}
	return s
}

func text(s string) (*mcp.CallToolResult, error) { return mcp.NewToolResultText(s), nil }

func TestCallsRunConcurrently(t *testing.T) {
	const n = 20
	var all sync.WaitGroup
	all.Add(n)
	s := newServer(map[string]handler{"meet": func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		all.Done()
		all.Wait() // for all the others
		return text("met")
	}})
	c := dial(t, inprocess.New(mcpgo.Serve(s)))
	c.handshake()
	for range n {
		c.send("tools/call", `{"name":"meet"}`)
	}
	c.waitFor(n, `"met"`)
}

func TestAPanicCostsItsCall(t *testing.T) {
	s := newServer(map[string]handler{
		"boom": func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { panic("kaboom") },
		"fine": func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) { return text("fine") },
	})
	s.AddNotificationHandler("notifications/boom", func(context.Context, mcp.JSONRPCNotification) { panic("kaboom") })
	c := dial(t, inprocess.New(mcpgo.Serve(s)))
	c.handshake()
	id := c.send("tools/call", `{"name":"boom"}`)
	c.waitFor(1, "kaboom")
	for _, m := range c.Messages() {
		var answer struct {
			ID    int64
			Error *struct{ Code int }
		}
		if strings.Contains(string(m), "kaboom") &&
			(json.Unmarshal(m, &answer) != nil || answer.ID != id || answer.Error == nil || answer.Error.Code != -32603) {
			t.Errorf("the panic's answer is %s", m)
		}
	}
	c.notify("notifications/boom", `{}`)
	if got := c.call("tools/call", `{"name":"fine"}`); !strings.Contains(got, "fine") {
		t.Errorf("after the panics: %s", got)
	}
}

func TestToolChangesAreAnnounced(t *testing.T) {
	s := newServer(map[string]handler{"one": nil})
	c := dial(t, inprocess.New(mcpgo.Serve(s)))
	c.handshake()
	s.AddTool(mcp.NewTool("two"), nil)
	c.waitFor(1, "notifications/tools/list_changed")
	if got := c.call("tools/list", `{}`); !strings.Contains(got, `"two"`) {
		t.Errorf("tools/list: %s", got)
	}
	s.DeleteTools("two")
	c.waitFor(2, "notifications/tools/list_changed")
}

func TestNoNotificationIsDropped(t *testing.T) {
	const senders, each = 16, 500
	s := newServer(nil)
	c := dial(t, inprocess.New(mcpgo.Serve(s)))
	c.handshake()
	var wg sync.WaitGroup
	for range senders {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range each {
				s.SendNotificationToAllClients("notifications/burst", map[string]any{"a": 1})
			}
		}()
	}
	wg.Wait()
	c.waitFor(senders*each, "notifications/burst")
}

func TestConnectionsAreApart(t *testing.T) {
	started := make(chan string, 2)
	s := newServer(map[string]handler{
		"who": func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			session := server.ClientSessionFromContext(ctx)
			return text(session.SessionID() + " " + string(session.(server.SessionWithLogging).GetLogLevel()))
		},
		"wait": func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			started <- server.ClientSessionFromContext(ctx).SessionID()
			<-ctx.Done()
			return text("canceled")
		},
	})
	tr := inprocess.New(mcpgo.Serve(s))
	a, b := dial(t, tr), dial(t, tr)
	a.handshake()
	b.handshake()
	a.call("logging/setLevel", `{"level":"debug"}`)
	whoA, whoB := a.call("tools/call", `{"name":"who"}`), b.call("tools/call", `{"name":"who"}`)
	if whoA == whoB || !strings.Contains(whoA, " debug") || !strings.Contains(whoB, " error") {
		t.Errorf("sessions and levels: %s and %s", whoA, whoB)
	}
	// The same request id in both: canceling one leaves the other.
	id := a.send("tools/call", `{"name":"wait"}`)
	if other := b.send("tools/call", `{"name":"wait"}`); other+1 != id {
		t.Fatalf("ids %d and %d: the test is wrong", id, other)
	}
	b.send("tools/call", `{"name":"wait"}`) // has id now
	for range 3 {
		<-started
	}
	a.notify("notifications/cancelled", fmt.Sprintf(`{"requestId":%d}`, id))
	a.waitFor(1, `"canceled"`)
	if n := b.count(`"canceled"`); n != 0 {
		t.Errorf("a cancellation of one connection canceled %d calls of the other", n)
	}
}

func TestTheEndEndsHandlers(t *testing.T) {
	conntest.CheckLeaks(t)
	ended := make(chan struct{})
	running := make(chan struct{})
	wait := func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		close(running)
		<-ctx.Done()
		close(ended)
		return text("")
	}
	s := newServer(map[string]handler{"wait": wait})
	c := dial(t, inprocess.New(mcpgo.Serve(s)))
	c.handshake()
	c.send("tools/call", `{"name":"wait"}`)
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
	// A notification after the end goes nowhere and blocks no sender.
	s.SendNotificationToAllClients("notifications/late", nil)
}

// BenchmarkIdle shows what one connection costs that has done its handshake and does nothing.
func BenchmarkIdle(b *testing.B) {
	s := newServer(map[string]handler{"one": nil})
	tr := inprocess.New(mcpgo.Serve(s))
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
