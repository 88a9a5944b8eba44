package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// fake is a scripted MCP server in this process. Its fields may be changed between connections, under mu.
type fake struct {
	mu     sync.Mutex
	tools  []string
	words  map[string]string // descriptions, by tool
	refuse error             // what a dial meets
	mute   bool              // answers nothing
	unlist bool              // refuses to list its tools
	bare   bool              // has nothing but tools
	echoes bool              // says after each list that it has changed
	delay  time.Duration     // before the answer to initialize
	deaf   bool              // answers no ping and no call
	babble bool              // answers calls with what is no answer
	offers string            // more capabilities, each after a comma
	onRead func(ctx context.Context, uri string) (result string, err error)
	onCall func(ctx context.Context, tool string, args json.RawMessage) (string, error)

	dials  atomic.Int64
	alive  atomic.Int64
	lists  atomic.Int64
	calls  atomic.Int64
	pings  atomic.Int64
	reads  atomic.Int64
	mostly atomic.Int64 // the most connections at one time

	current context.CancelCauseFunc // kills the connection that is open
	peer    inprocess.Peer
}

func newFake(tools ...string) *fake { return &fake{tools: tools} }

// kill ends the open connection as a crash would.
func (f *fake) kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.current != nil {
		f.current(errors.New("killed"))
	}
}

// setTools changes the list and says so to the client.
func (f *fake) setTools(tools ...string) {
	f.mu.Lock()
	f.tools = tools
	peer := f.peer
	f.mu.Unlock()
	if peer != nil {
		_ = peer.Write(context.Background(), []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
	}
}

// say sends a notification.
func (f *fake) say(method, params string) {
	f.mu.Lock()
	peer := f.peer
	f.mu.Unlock()
	_ = peer.Write(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params))
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) serve(ctx context.Context, peer inprocess.Peer) error {
	f.dials.Add(1)
	if n := f.alive.Add(1); n > f.mostly.Load() {
		f.mostly.Store(n)
	}
	defer f.alive.Add(-1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.mu.Lock()
	refuse, delay := f.refuse, f.delay
	f.current, f.peer = cancel, peer
	f.mu.Unlock()
	if refuse != nil {
		return refuse
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		msg, err := peer.Read(ctx)
		if err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			return err
		}
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name      string          `json:"name"`
				URI       string          `json:"uri"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if json.Unmarshal(msg, &req) != nil || req.ID == nil {
			continue
		}
		f.mu.Lock()
		mute, unlist, babble, tools, words, onCall := f.mute, f.unlist, f.babble, f.tools, maps.Clone(f.words), f.onCall
		onRead := f.onRead
		deaf := f.deaf && (req.Method == "ping" || req.Method == "tools/call")
		f.mu.Unlock()
		if req.Method == "ping" {
			f.pings.Add(1)
		}
		if mute || deaf {
			continue
		}
		answer := func(result string) {
			_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result))
		}
		switch req.Method {
		case "initialize":
			if delay > 0 {
				select {
				case <-time.After(delay):
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
			rest := `,"resources":{},"logging":{}`
			if f.bare {
				rest = ""
			}
			answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}` + rest + f.offers +
				`},"serverInfo":{"name":"fake","version":"1"}}`)
		case "tools/list":
			f.lists.Add(1)
			if unlist {
				_ = peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no list today"}}`, req.ID))
				continue
			}
			list := []map[string]any{}
			for _, t := range tools {
				list = append(list, map[string]any{"name": t, "description": words[t], "inputSchema": map[string]any{"type": "object"},
					"annotations": map[string]any{"readOnlyHint": t == "read", "destructiveHint": t == "destroy"}})
			}
			raw, _ := json.Marshal(map[string]any{"tools": list})
			answer(string(raw))
			f.mu.Lock()
			echoes := f.echoes
			f.mu.Unlock()
			if echoes {
				f.say("notifications/tools/list_changed", "{}")
			}
		case "tools/call":
			f.calls.Add(1)
			if babble {
				answer(`17`)
				continue
			}
			wg.Go(func() {
				text := "ok " + req.Params.Name
				if onCall != nil {
					var err error
					if text, err = onCall(ctx, req.Params.Name, req.Params.Arguments); err != nil {
						return // no answer at all
					}
				}
				raw, _ := json.Marshal(map[string]any{"content": []map[string]any{{"type": "text", "text": text}}, "isError": req.Params.Name == "fail"})
				answer(string(raw))
			})
		case "resources/read":
			f.reads.Add(1)
			wg.Go(func() {
				if onRead == nil {
					answer(`{"contents":[]}`)
				} else if result, err := onRead(ctx, req.Params.URI); err == nil {
					answer(result)
				}
			})
		case "resources/list":
			answer(`{"resources":[{"uri":"x:///1","name":"one"}]}`)
		default:
			answer(`{}`)
		}
	}
}

// start runs a manager with in-process servers and closes it at the end of the test, when nothing may be left of it.
func start(t testing.TB, cfg supervisor.Config, fakes map[string]*fake) *supervisor.Manager {
	t.Helper()
	if cfg.Servers == nil {
		cfg.Servers = map[string]supervisor.Spec{}
	}
	cfg.InProcess = map[string]func(context.Context, inprocess.Peer) error{}
	for name, f := range fakes {
		cfg.InProcess[name] = f.serve
		if _, ok := cfg.Servers[name]; !ok {
			cfg.Servers[name] = supervisor.Spec{Type: messages.SDK}
		}
	}
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, m) })
	return m
}

func closeAll(t testing.TB, m *supervisor.Manager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
	// The actor library's throttle for dead letters sleeps for a nanosecond: a bubble must not end before it.
	time.Sleep(time.Millisecond)
}

func settled(t testing.TB, m *supervisor.Manager) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	// Some tests have servers whose spec cannot work.
	if err := m.Settled(ctx); err != nil && !errors.Is(err, supervisor.ErrNotConnected) {
		t.Fatal(err)
	}
}

func phase(t testing.TB, m *supervisor.Manager, name string) messages.Phase {
	t.Helper()
	st, err := m.ServerStatus(name)
	if err != nil {
		t.Fatal(err)
	}
	return st.Status
}

// eventually waits, in real or virtual time, until ok.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 3000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("never: %s", what)
}

func names(m *supervisor.Manager) []string {
	out := []string{}
	for e := range m.Tools().All() {
		out = append(out, e.Name)
	}
	return out
}
