package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
	"github.com/mcpvisor/mcpvisor/transports"
)

// oddResult has blanks, an escape and a number that a decoder would write differently.
const oddResult = `{ "content":[ {"type":"text","text":"\u0041 <b> & \u202e"} ],  "structuredContent":{"n":1.0e2} }`

// serve is an MCP server with the tools odd, fails, refuses and waits. waits answers when its call is cancelled, and
// tells started and stopped.
func serve(started, stopped chan<- struct{}) func(context.Context, transports.Peer) error {
	return func(ctx context.Context, peer transports.Peer) error {
		var mu sync.Mutex
		waiting := map[string]json.RawMessage{}
		for {
			raw, err := peer.Read(ctx)
			if err != nil {
				return nil //nolint:nilerr // the connection ended
			}
			var m struct {
				ID     json.RawMessage
				Method string
				Params struct {
					Name      string
					RequestID json.RawMessage `json:"requestId"`
				}
			}
			if err := json.Unmarshal(raw, &m); err != nil {
				return err
			}
			answer := func(body string) {
				_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, body))
			}
			switch m.Method {
			case "initialize":
				answer(`"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},
					"serverInfo":{"name":"p","version":"1"}}`)
			case "tools/list":
				answer(`"result":{"tools":[{"name":"odd","inputSchema":{"type":"object"}},
					{"name":"fails","inputSchema":{"type":"object"}},{"name":"refuses","inputSchema":{"type":"object"}},
					{"name":"waits","inputSchema":{"type":"object"}}]}`)
			case "tools/call":
				switch m.Params.Name {
				case "odd":
					answer(`"result":` + oddResult)
				case "fails":
					answer(`"result":{"content":[],"isError":true}`)
				case "refuses":
					answer(`"error":{"code":-32099,"message":"not today","data":{"a": 1}}`)
				case "waits":
					mu.Lock()
					waiting[string(m.ID)] = m.ID
					mu.Unlock()
					started <- struct{}{}
				}
			case "notifications/cancelled":
				mu.Lock()
				_, ok := waiting[string(m.Params.RequestID)]
				mu.Unlock()
				if ok {
					stopped <- struct{}{}
				}
			}
		}
	}
}

// stage is a manager with one server p, and where the tests of a machine stand.
type stage struct {
	m                *supervisor.Manager
	place            control.Place
	started, stopped chan struct{}
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{place: newPlace(t), started: make(chan struct{}, 8), stopped: make(chan struct{}, 8)}
	peer := serve(s.started, s.stopped)
	m, err := supervisor.Start(t.Context(), supervisor.Config{
		Servers:   map[string]supervisor.Spec{"p": {Type: messages.SDK}, "off": {Type: messages.SDK, Disabled: true}},
		InProcess: map[string]func(context.Context, transports.Peer) error{"p": peer, "off": peer},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := m.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.m = m
	return s
}

func (s *stage) serve(t *testing.T) *control.Server {
	t.Helper()
	srv, err := control.Serve(s.place, control.Local(s.m, control.LocalConfig{Project: s.place.Project, Origin: "o"}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	return srv
}

func dial(t *testing.T, p control.Place) *control.Client {
	t.Helper()
	c, err := control.Dial(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// newPlace is a place of its own. The directory is short: t.TempDir is longer than the path of a socket may be.
func newPlace(t *testing.T) control.Place {
	t.Helper()
	dir, err := os.MkdirTemp("", "c")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	run := filepath.Join(dir, "r")
	return control.Place{
		Socket: filepath.Join(run, "s.sock"), Lock: filepath.Join(run, "s.lock"),
		Journal: filepath.Join(dir, "j", "j.jsonl"), Project: "/the/project",
	}
}

func unixOnly(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no modes: the access rules of the profile directory count there")
	}
}
