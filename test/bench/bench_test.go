package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

func TestMain(m *testing.M) {
	if servers.Main(os.Args[1:]) {
		return
	}
	os.Exit(m.Run())
}

func manager(b *testing.B, cfg supervisor.Config) *supervisor.Manager {
	b.Helper()
	m, err := supervisor.Start(context.Background(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			b.Error(err)
		}
	})
	if err := m.Settled(context.Background()); err != nil {
		b.Fatal(err)
	}
	for _, st := range m.Status() {
		if st.Status != messages.Connected {
			b.Fatalf("%s is %s: %s", st.Name, st.Status, st.Error)
		}
	}
	return m
}

func stdio(kind string, parameters ...string) supervisor.Spec {
	command, args := servers.Command(kind, parameters...)
	return supervisor.Spec{Command: command, Args: args}
}

func one(s supervisor.Spec) supervisor.Config {
	return supervisor.Config{Servers: map[string]supervisor.Spec{"s": s}}
}

func inProcess() supervisor.Config {
	serve := mcpgo.Serve(web.Server("bench"))
	return supervisor.Config{
		InProcess: map[string]func(context.Context, transports.Peer) error{"s": serve},
		Servers:   map[string]supervisor.Spec{"s": {Type: messages.SDK}},
	}
}

// versions are the protocol versions of the benchmarks, by era: both sides of a comparison speak the same one.
var versions = map[messages.Era]string{messages.EraLegacy: "2025-11-25", messages.EraModern: "2026-07-28"}

// bare is mcp-go's own client on the same server, connected in the same era.
func bare(b *testing.B, t transport.Interface, era messages.Era) *mcpclient.Client {
	b.Helper()
	c := mcpclient.NewClient(t)
	if err := c.Start(context.Background()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	init := mcp.InitializeRequest{}
	init.Params.ProtocolVersion = versions[era]
	init.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if r, err := c.Initialize(context.Background(), init); err != nil || r.ProtocolVersion != versions[era] {
		b.Fatalf("%v, %v", r, err)
	}
	return c
}

// callers runs b.N calls from n goroutines.
func callers(b *testing.B, n int, call func() error) {
	b.ReportAllocs()
	b.ResetTimer()
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := call(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkCall is one tool call of about 100 bytes: mcpvisor's facade, and mcp-go's typed client, on the same server.
func BenchmarkCall(b *testing.B) {
	args := json.RawMessage(`{"text":"` + strings.Repeat("x", 80) + `"}`)
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = "echo", map[string]any{"text": strings.Repeat("x", 80)}
	httpServer := httptest.NewServer(web.Good())
	defer httpServer.Close()
	command, cmdArgs := servers.Command("good")
	for _, kind := range []struct {
		name string
		eras []messages.Era
		cfg  func() supervisor.Config
		bare func(b *testing.B) transport.Interface
	}{
		{"stdio", []messages.Era{messages.EraLegacy}, func() supervisor.Config { return one(stdio("good")) }, func(*testing.B) transport.Interface {
			return transport.NewStdio(command, nil, cmdArgs...)
		}},
		{"http", []messages.Era{messages.EraLegacy, messages.EraModern}, func() supervisor.Config {
			return one(supervisor.Spec{URL: httpServer.URL + "/mcp"})
		}, func(b *testing.B) transport.Interface {
			t, err := transport.NewStreamableHTTP(httpServer.URL + "/mcp")
			if err != nil {
				b.Fatal(err)
			}
			return t
		}},
		{"sdk", []messages.Era{messages.EraLegacy, messages.EraModern}, inProcess, func(*testing.B) transport.Interface {
			return transport.NewInProcessTransport(web.Server("bench"))
		}},
	} {
		compare := func(era messages.Era, n int) {
			b.Run(fmt.Sprintf("%s/%s/callers=%d/mcpvisor", kind.name, era, n), func(b *testing.B) {
				cfg := kind.cfg()
				spec := cfg.Servers["s"]
				spec.Era = era
				cfg.Servers["s"] = spec
				m := manager(b, cfg)
				callers(b, n, func() error {
					_, err := m.CallTool(context.Background(), "mcp__s__echo", args)
					return err
				})
			})
			b.Run(fmt.Sprintf("%s/%s/callers=%d/mcp-go", kind.name, era, n), func(b *testing.B) {
				c := bare(b, kind.bare(b), era)
				callers(b, n, func() error {
					_, err := c.CallTool(context.Background(), request)
					return err
				})
			})
		}
		for _, era := range kind.eras {
			for _, n := range []int{1, 64} {
				compare(era, n)
			}
		}
	}
}

// BenchmarkEndOfCallsAfterDeath is how long after the SIGKILL of a child its calls in flight have their outcome, the
// slowest of 64. The aim is 50 ms.
func BenchmarkEndOfCallsAfterDeath(b *testing.B) {
	m := manager(b, one(stdio("good")))
	const inFlight = 64
	var took []time.Duration
	for range b.N {
		var wg sync.WaitGroup
		for range inFlight {
			wg.Go(func() {
				_, err := m.CallTool(context.Background(), "mcp__s__sleep", map[string]any{"for": "60s"})
				if !errors.Is(err, supervisor.ErrOutcomeUnknown) {
					b.Errorf("%v", err)
				}
			})
		}
		time.Sleep(50 * time.Millisecond) // they are with the server now
		st, err := m.ServerStatus("s")
		if err != nil || st.PID == 0 {
			b.Fatalf("%+v, %v", st, err)
		}
		child, err := os.FindProcess(st.PID)
		if err != nil {
			b.Fatal(err)
		}
		start := time.Now()
		if err := child.Kill(); err != nil {
			b.Fatal(err)
		}
		wg.Wait()
		took = append(took, time.Since(start))
		if err := m.Reconnect(context.Background(), "s"); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op") // the loop's own time says nothing
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "ms-max")
}

// BenchmarkIdleServer is the memory of one connected server that nobody uses, everything of ours included: heap and
// stacks of this process, divided by the number of servers. The children's own memory is theirs.
func BenchmarkIdleServer(b *testing.B) {
	httpServer := httptest.NewServer(web.Good())
	defer httpServer.Close()
	for _, kind := range []struct {
		name string
		n    int
		spec supervisor.Spec
	}{
		{"sdk", 5000, supervisor.Spec{Type: messages.SDK, Name: "s"}},
		{"stdio", 50, stdio("good")},
		{"http", 200, supervisor.Spec{URL: httpServer.URL + "/mcp"}},
	} {
		b.Run(fmt.Sprintf("%s/servers=%d", kind.name, kind.n), func(b *testing.B) {
			for range b.N {
				cfg := supervisor.Config{
					InProcess: map[string]func(context.Context, transports.Peer) error{"s": tiny},
					Servers:   map[string]supervisor.Spec{},
				}
				for i := range kind.n {
					cfg.Servers[fmt.Sprintf("s%04d", i)] = kind.spec
				}
				before := footprint()
				m := manager(b, cfg)
				after := footprint()
				b.ReportMetric(float64(after-before)/float64(kind.n)/1024, "KB/server")
				_ = m.Close(context.Background())
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func footprint() int64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc + s.StackInuse)
}

// tiny is an in-process server with one tool that holds nothing of its own but its goroutine.
func tiny(ctx context.Context, peer transports.Peer) error {
	for {
		msg, err := peer.Read(ctx)
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(msg, &req) != nil || req.ID == nil {
			continue
		}
		result := `{"content":[]}`
		switch req.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
		}
		if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)); err != nil {
			return err
		}
	}
}

// BenchmarkConnect is from Connect to the registered tools of one stdio server. Seed 004 asks for less than a second.
func BenchmarkConnect(b *testing.B) {
	m := manager(b, supervisor.Config{})
	spec := stdio("good")
	for b.Loop() {
		if err := m.Connect(context.Background(), "s", spec); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := m.Remove(context.Background(), "s"); err != nil {
			b.Fatal(err)
		}
		for m.Server("s") != nil {
			time.Sleep(time.Millisecond)
		}
		b.StartTimer()
	}
}

// BenchmarkStart is from Start until many stdio servers are connected, through the gate with its default limits.
func BenchmarkStart(b *testing.B) {
	for _, n := range []int{100, 500} {
		b.Run(fmt.Sprintf("stdio/servers=%d", n), func(b *testing.B) {
			for range b.N {
				cfg := supervisor.Config{Servers: map[string]supervisor.Spec{}}
				for i := range n {
					cfg.Servers[fmt.Sprintf("s%03d", i)] = stdio("good")
				}
				start := time.Now()
				m := manager(b, cfg)
				b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms-to-connected")
				_ = m.Close(context.Background())
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkStatus is the status of every one of 1,000 servers.
func BenchmarkStatus(b *testing.B) {
	cfg := supervisor.Config{
		InProcess: map[string]func(context.Context, transports.Peer) error{"s": tiny},
		Servers:   map[string]supervisor.Spec{},
	}
	for i := range 1000 {
		cfg.Servers[fmt.Sprintf("s%04d", i)] = supervisor.Spec{Type: messages.SDK, Name: "s"}
	}
	m := manager(b, cfg)
	b.ReportAllocs()
	for b.Loop() {
		if len(m.Status()) != 1000 {
			b.Fatal("a server is missing")
		}
	}
}
