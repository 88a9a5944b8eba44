package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// What can be read of a manager: every server, one by its name, its tools, those of some servers or of all. None of it
// asks a server anything.
func TestServersAndToolsAreFoundByName(t *testing.T) {
	seeds.Shows(t, "000.4.status", "000.4.server-status", "001.2.by-name", "001.2.cached-tools",
		"001.4.request-names-servers", "002.4.get-tools", "002.4.list-servers", "004.fr1.is-connected",
		"004.fr6.get-client", "004.fr6.connected-servers")
	synctest.Test(t, func(t *testing.T) {
		a, b, off := newFake("x", "y"), newFake("x"), newFake("z")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"off": {Type: messages.SDK, Disabled: true}}},
			map[string]*fake{"a": a, "b": b, "off": off})
		settled(t, m)

		if got := m.Servers(); !slices.Equal(got, []string{"a", "b", "off"}) {
			t.Errorf("servers %q", got)
		}
		if got := m.ConnectedServers(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("connected %q", got)
		}
		var seen []string
		for _, st := range m.Status() {
			one, err := m.ServerStatus(st.Name)
			if err != nil || one.Status != st.Status {
				t.Errorf("%s: %s in the list and %s by itself, %v", st.Name, st.Status, one.Status, err)
			}
			seen = append(seen, st.Name+" "+string(st.Status))
		}
		if !slices.Equal(seen, []string{"a connected", "b connected", "off disabled"}) {
			t.Errorf("status %q", seen)
		}
		_, err := m.ServerStatus("nobody")
		if !errors.Is(err, supervisor.ErrUnknownServer) || !strings.Contains(err.Error(), "nobody") {
			t.Errorf("the status of an unknown server: %v", err)
		}

		s := m.Server("a")
		if s == nil || s.Name() != "a" || !s.IsConnected() || len(s.Tools()) != 2 {
			t.Fatalf("server a: %+v", s)
		}
		if res, err := s.CallTool(t.Context(), "y", nil); err != nil || res.Text() != "ok y" {
			t.Errorf("%v, %v", res, err)
		}
		if o := m.Server("off"); o == nil || o.IsConnected() {
			t.Errorf("a disabled server: %+v", o)
		}
		if m.Server("nobody") != nil {
			t.Error("there is a server that nobody configured")
		}

		if got := names(m); !slices.Equal(got, []string{"mcp__a__x", "mcp__a__y", "mcp__b__x"}) {
			t.Errorf("all tools: %q", got)
		}
		toolsOf := func(servers ...string) (got []string) {
			t.Helper()
			entries, err := m.ToolsOf(t.Context(), servers...)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				got = append(got, e.Name)
			}
			return got
		}
		if got := toolsOf("b"); !slices.Equal(got, []string{"mcp__b__x"}) {
			t.Errorf("the tools of b: %q", got)
		}
		if got := toolsOf("b", "a"); !slices.Equal(got, []string{"mcp__b__x", "mcp__a__x", "mcp__a__y"}) {
			t.Errorf("the tools of b and a: %q", got)
		}
		if got := toolsOf(); len(got) != 3 {
			t.Errorf("the tools of all: %q", got)
		}
		if _, err := m.ToolsOf(t.Context(), "a", "nobody"); !errors.Is(err, supervisor.ErrUnknownServer) {
			t.Errorf("the tools of an unknown server: %v", err)
		}
		if a.lists.Load() != 1 || b.lists.Load() != 1 || off.lists.Load() != 0 {
			t.Errorf("listed %d, %d and %d times: reading asks no server", a.lists.Load(), b.lists.Load(), off.lists.Load())
		}
	})
}

func TestConnectAllAndDisconnectAll(t *testing.T) {
	seeds.Shows(t, "004.fr6.connect-all", "004.fr6.disconnect-all")
	synctest.Test(t, func(t *testing.T) {
		a, b, bad := newFake("x"), newFake("x"), newFake("x")
		a.delay, b.delay = time.Second, time.Second
		bad.refuse = errors.New("down")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"b": {Type: messages.SDK, Disabled: true}}},
			map[string]*fake{"a": a, "b": b, "bad": bad})
		begin := time.Now()
		err := m.ConnectAll(t.Context())
		var e *supervisor.Error
		if !errors.As(err, &e) || e.Server != "bad" || strings.Contains(err.Error(), `"a"`) {
			t.Errorf("ConnectAll names those that failed: %v", err)
		}
		if took := time.Since(begin); took > 1500*time.Millisecond {
			t.Errorf("it took %v, and each needs a second", took)
		}
		if got := m.ConnectedServers(); !slices.Equal(got, []string{"a", "b"}) {
			t.Errorf("connected %q", got)
		}
		bad.set(func(f *fake) { f.refuse = nil })
		if err := m.ConnectAll(t.Context()); err != nil || a.dials.Load() != 1 {
			t.Errorf("%v; a server that was connected was dialled %d times", err, a.dials.Load())
		}
		if err := m.DisconnectAll(t.Context()); err != nil {
			t.Error(err)
		}
		if m.Tools().Len() != 0 || len(m.ConnectedServers()) != 0 || len(m.Servers()) != 3 {
			t.Errorf("%d tools, connected %q, servers %q", m.Tools().Len(), m.ConnectedServers(), m.Servers())
		}
		time.Sleep(time.Hour)
		if n := a.alive.Load() + b.alive.Load() + bad.alive.Load(); n != 0 {
			t.Errorf("%d connections an hour later", n)
		}
	})
}

// A server whose list changed while it had no connection, so that it could not announce it.
func TestToolsAreListedAgainOnReconnect(t *testing.T) {
	seeds.Shows(t, "004.fr3.ac-refresh", "001.1.reconnection", "001.1.health", "004.fr6.reconnect", "004.fr6.health",
		"004.fr6.ac-reconnect")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("old")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		f.set(func(f *fake) { f.tools = []string{"new"} })
		if err := m.Reconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if got := names(m); !slices.Equal(got, []string{"mcp__a__new"}) {
			t.Errorf("after Reconnect: %q", got)
		}
		// It dies without any call: the manager notices that and connects it again.
		f.set(func(f *fake) { f.tools = []string{"newer"} })
		f.kill()
		synctest.Wait()
		if st, _ := m.ServerStatus("a"); st.Status != messages.Pending || st.Step != messages.Restarting ||
			st.NextAttempt == nil {
			t.Errorf("right after its death: %+v", st)
		}
		time.Sleep(time.Minute)
		if got := names(m); !slices.Equal(got, []string{"mcp__a__newer"}) || phase(t, m, "a") != messages.Connected {
			t.Errorf("a minute later it is %s with %q", phase(t, m, "a"), got)
		}
		if f.calls.Load() != 0 || f.mostly.Load() != 1 {
			t.Errorf("%d calls, at most %d connections at once", f.calls.Load(), f.mostly.Load())
		}
	})
}

func TestAServerThatCannotBeListedIsNotConnected(t *testing.T) {
	seeds.Shows(t, "000.8.list-failure")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		f.unlist, f.bare = true, true // one that has resources as well is there for them
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		st, _ := m.ServerStatus("a")
		if st.Status == messages.Connected || !strings.Contains(st.Error, "no list today") || m.Tools().Len() != 0 {
			t.Errorf("%s with %d tools: %q", st.Status, m.Tools().Len(), st.Error)
		}
		f.set(func(f *fake) { f.unlist = false })
		eventually(t, "it is tried again", func() bool { return phase(t, m, "a") == messages.Connected })
	})
}

// One connection serves a hundred calls that are all under way together; each gets its own answer.
func TestOneConnectionIsSharedByAllCalls(t *testing.T) {
	seeds.Shows(t, "001.1.pooling", "002.5.pending")
	synctest.Test(t, func(t *testing.T) {
		const calls = 100
		f := newFake("x")
		var together atomic.Int64
		f.onCall = func(_ context.Context, _ string, args json.RawMessage) (string, error) {
			together.Add(1)
			time.Sleep(time.Minute / 2)
			return string(args), nil
		}
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		var wg sync.WaitGroup
		for i := range calls {
			wg.Go(func() {
				want := fmt.Sprintf(`{"i":%d}`, i)
				if res, err := m.CallTool(t.Context(), "mcp__a__x", map[string]any{"i": i}); err != nil || res.Text() != want {
					t.Errorf("call %d: %v, %v", i, res, err)
				}
			})
		}
		synctest.Wait()
		if together.Load() != calls || f.dials.Load() != 1 {
			t.Errorf("%d of %d calls are under way, over %d connections", together.Load(), calls, f.dials.Load())
		}
		wg.Wait()
	})
}

// Everything at once from many goroutines. What each operation says cannot be foreseen; that every error is one of
// ours, that no server ever has two connections, and that the manager is in order afterwards, can.
func TestEveryOperationMayBeCalledAtOnce(t *testing.T) {
	seeds.Shows(t, "000.4.safe-for-concurrent-use")
	synctest.Test(t, func(t *testing.T) {
		const workers, rounds = 8, 25
		fakes := map[string]*fake{"a": newFake("x"), "b": newFake("x"), "r0": newFake("x"), "r1": newFake("x")}
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"r0": {Type: messages.SDK, Name: "r0", Disabled: true},
			"r1": {Type: messages.SDK, Name: "r1", Disabled: true}}}, fakes)
		settled(t, m)
		ctx := t.Context()
		operations := []func(name, runtime string) error{
			func(name, _ string) error { return m.Toggle(ctx, name, false) },
			func(name, _ string) error { return m.Toggle(ctx, name, true) },
			func(name, _ string) error { return m.Reconnect(ctx, name) },
			func(name, _ string) error { return m.Disconnect(ctx, name) },
			func(name, _ string) error { return m.Refresh(ctx, name) },
			func(_, runtime string) error {
				return m.Connect(ctx, "at-"+runtime, supervisor.Spec{Type: messages.SDK, Name: runtime})
			},
			func(_, runtime string) error { return m.Remove(ctx, "at-"+runtime) },
			func(_, runtime string) error {
				_, err := m.SetServers(ctx, map[string]supervisor.Spec{"at-" + runtime: {Type: messages.SDK, Name: runtime}})
				return err
			},
			func(string, string) error { return m.ConnectAll(ctx) },
			func(name, _ string) error { _, err := m.CallServerTool(ctx, name, "x", nil); return err },
			func(name, _ string) error { _, err := m.CallTool(ctx, "mcp__"+name+"__x", nil); return err },
			func(name, _ string) error { _, err := m.ServerStatus(name); return err },
			func(name, _ string) error { _, err := m.History(name); return err },
			func(name, _ string) error { _, err := m.AgentTools(ctx, name); return err },
			func(string, string) error { m.Status(); m.ConnectedServers(); m.Watch(1).Close(); return nil },
			func(name, _ string) error { fakes[name].kill(); return nil },
		}
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := range rounds {
					// A fixed walk, another for each worker: what meets what is up to the scheduler.
					op := (i*(2*w+1) + 3*w) % len(operations)
					err := operations[op]([]string{"a", "b"}[(i+w)%2], []string{"r0", "r1"}[(i/2+w)%2])
					var e *supervisor.Error
					if err != nil && !errors.As(err, &e) {
						t.Errorf("operation %d: a %T: %v", op, err, err)
					}
				}
			})
		}
		wg.Wait()
		if _, err := m.SetServers(ctx, nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b"} {
			eventually(t, name+" works", func() bool {
				return m.Toggle(ctx, name, true) == nil && phase(t, m, name) == messages.Connected
			})
			if res, err := m.CallServerTool(ctx, name, "x", nil); err != nil || res.Text() != "ok x" {
				t.Errorf("%s: %v, %v", name, res, err)
			}
		}
		eventually(t, "runtime servers are gone", func() bool { return len(m.Servers()) == 4 })
		for _, name := range []string{"a", "b"} { // the others stand behind two servers each
			if n := fakes[name].mostly.Load(); n > 1 {
				t.Errorf("%s had %d connections at once", name, n)
			}
		}
	})
}

// A program that must not start processes says so once: a command is refused with the reason, wherever it comes from.
func TestOnlyAllowedTransportsAreUsed(t *testing.T) {
	seeds.Shows(t, "001.6.no-stdio", "001.7.no-stdio-default")
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{
			AllowedTransports: []messages.TransportKind{messages.HTTP, messages.SSE},
			Servers:           map[string]supervisor.Spec{"configured": {Command: "/bin/sh", Args: []string{"-c", "exit 7"}}},
			Transport: func(name string, spec supervisor.Spec) (transports.Transport, error) {
				if spec.Kind() == messages.Stdio {
					t.Errorf("the transport of %s was made", name)
				}
				return nil, nil
			},
		}, nil)
		const reason = `the transport "stdio" is not allowed here; allowed are [http sse]`
		err := m.Connect(t.Context(), "late", supervisor.Spec{Command: "/bin/sh"})
		if !errors.Is(err, supervisor.ErrInvalid) || !strings.Contains(err.Error(), reason) || m.Server("late") != nil {
			t.Errorf("Connect: %v", err)
		}
		res, err := m.SetServers(t.Context(), map[string]supervisor.Spec{"set": {Type: messages.Stdio, Command: "/bin/sh"}})
		if err != nil || !strings.Contains(res.Errors["set"], reason) || len(res.Added) != 0 {
			t.Errorf("SetServers: %+v, %v", res, err)
		}
		time.Sleep(time.Hour)
		st, _ := m.ServerStatus("configured")
		if st.Status != messages.Failed || st.Error != reason || st.PID != 0 || st.Retry != messages.RetryNever {
			t.Errorf("configured: %+v", st)
		}
	})
}

// Servers that are down, silent or wrong at the start are no error of the program: Start returns at once, and
// everything answers. Nothing of the manager asks the program to be less ready than it is.
func TestServersThatAreDownDoNotConcernTheProgram(t *testing.T) {
	seeds.Shows(t, "001.7.readiness", "001.7.down-at-startup")
	synctest.Test(t, func(t *testing.T) {
		down, silent, fine := newFake("x"), newFake("x"), newFake("x")
		down.refuse, silent.mute = errors.New("down"), true
		begin := time.Now()
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"wrong": {}}},
			map[string]*fake{"down": down, "silent": silent, "fine": fine})
		eventually(t, "the healthy one answers", func() bool {
			_, err := m.CallTool(t.Context(), "mcp__fine__x", nil)
			return err == nil
		})
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("the others delayed it by %v", took)
		}
		if got := len(m.Status()); got != 4 {
			t.Errorf("the status of %d servers", got)
		}
		time.Sleep(time.Hour)
		down.set(func(f *fake) { f.refuse = nil })
		silent.set(func(f *fake) { f.mute = false })
		time.Sleep(10 * time.Minute)
		if got := m.ConnectedServers(); !slices.Equal(got, []string{"down", "fine", "silent"}) {
			t.Errorf("when they were there again, %q were connected", got)
		}
	})
}

func TestTheStyleOfNamesIsChosen(t *testing.T) {
	seeds.Shows(t, "004.fr7.mcp-name-style")
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{Naming: messages.Naming{Style: messages.StyleSingle}},
			map[string]*fake{"github": newFake("create_issue"), "a_b": newFake("c"), "a": newFake("b_c")})
		settled(t, m)
		got := names(m)
		if !slices.Contains(got, "mcp_github_create_issue") || !slices.Contains(got, "mcp_a_b_c") || len(got) != 3 {
			t.Errorf("names %q", got)
		}
		for _, name := range got { // one that could mean two tools carries a hash
			if res, err := m.CallTool(t.Context(), name, nil); err != nil || !strings.HasPrefix(res.Text(), "ok ") {
				t.Errorf("%s: %v, %v", name, res, err)
			}
		}
		if _, err := m.CallTool(t.Context(), "mcp__github__create_issue", nil); !errors.Is(err, supervisor.ErrUnknownTool) {
			t.Errorf("the other style: %v", err)
		}
	})
}

// A program makes a manager of parts of its own: here a command never becomes a process, because the transport is
// replaced, time is virtual, and chance is not.
func TestPartsAreReplacedInTests(t *testing.T) {
	seeds.Shows(t, "003.5.factory")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("create_issue")
		m := start(t, supervisor.Config{
			Servers: map[string]supervisor.Spec{"github": {Command: "npx", Args: []string{"-y", "server-github"},
				Env: map[string]string{"GITHUB_TOKEN": "t"}}},
			Transport: func(name string, spec supervisor.Spec) (transports.Transport, error) {
				if name != "github" || spec.Command != "npx" || spec.Env["GITHUB_TOKEN"] != "t" {
					t.Errorf("asked for %q, %+v", name, spec)
				}
				return inprocess.New(f.serve), nil
			},
			Rand: func() float64 { return 0 },
		}, nil)
		settled(t, m)
		res, err := m.CallTool(t.Context(), "mcp__github__create_issue", nil)
		if err != nil || res.Text() != "ok create_issue" {
			t.Errorf("%v, %v", res, err)
		}
		f.kill()
		time.Sleep(250 * time.Millisecond) // the least delay of the policy
		synctest.Wait()
		if f.dials.Load() != 2 || phase(t, m, "github") != messages.Connected {
			t.Errorf("%d dials, %s", f.dials.Load(), phase(t, m, "github"))
		}
	})
}
