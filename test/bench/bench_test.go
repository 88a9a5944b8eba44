package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
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
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
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
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"s": serve},
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
