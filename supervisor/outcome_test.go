package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
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

func hang(ctx context.Context, _ string, _ json.RawMessage) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// In-flight calls of a dead server end at its death, long before any deadline, as outcome unknown.
func TestCallsOfADeadServerEndAtItsDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("write")
		f.onCall = hang
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		const callers = 100
		errs := make(chan error, callers)
		for range callers {
			go func() {
				_, err := m.CallTool(context.Background(), "mcp__a__write", nil)
				errs <- err
			}()
		}
		synctest.Wait()
		begin := time.Now()
		f.kill()
		for range callers {
			err := <-errs
			if !errors.Is(err, supervisor.ErrOutcomeUnknown) {
				t.Fatalf("%v", err)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("the calls ended %v after the death", took)
		}
		if n := f.calls.Load(); n != callers {
			t.Errorf("%d executions of %d calls: a call that may have run was sent again", n, callers)
		}
	})
}

func TestOutcomes(t *testing.T) {
	seeds.Shows(t, "000.6.call", "001.2.raw-call", "004.fr4.ac-timeout", "004.nfr2.timeouts")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo", "fail", "slow")
		f.onCall = func(ctx context.Context, tool string, args json.RawMessage) (string, error) {
			if tool == "slow" {
				return hang(ctx, tool, args)
			}
			return string(args), nil
		}
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)

		res, err := m.CallTool(t.Context(), "mcp__a__echo", json.RawMessage(`{"n":9007199254740993}`))
		if err != nil || res.Outcome() != messages.OutcomeResult || !strings.Contains(res.Text(), "9007199254740993") {
			t.Errorf("result: %v %v", res, err)
		}
		if res, err = m.CallTool(t.Context(), "mcp__a__fail", nil); err != nil || res.Outcome() != messages.OutcomeToolError {
			t.Errorf("a tool's own failure is a result: %v %v", res, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = m.CallTool(ctx, "mcp__a__slow", nil)
		if !errors.Is(err, supervisor.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a passed deadline: %v", err)
		}
		begin := time.Now()
		if _, err = m.CallTool(context.Background(), "mcp__a__slow", nil); !errors.Is(err, supervisor.ErrOutcomeUnknown) || time.Since(begin) != time.Minute {
			t.Errorf("the default call timeout: %v after %v", err, time.Since(begin))
		}
		for _, args := range []any{json.RawMessage(`[1]`), json.RawMessage(`{`), func() {}} {
			if _, err = m.CallTool(t.Context(), "mcp__a__echo", args); !errors.Is(err, supervisor.ErrNotSent) || !errors.Is(err, supervisor.ErrInvalid) {
				t.Errorf("bad arguments: %v", err)
			}
		}
		if phase(t, m, "a") != messages.Connected {
			t.Error("a call's end changed the server's state")
		}
		_, err = m.CallServerTool(t.Context(), "a", "nope", nil)
		if !errors.Is(err, supervisor.ErrUnknownTool) || !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("unknown tool: %v", err)
		}
		_, err = m.CallServerTool(t.Context(), "nobody", "x", nil)
		if !errors.Is(err, supervisor.ErrUnknownServer) || !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("unknown server: %v", err)
		}
	})
}

// "Nothing that may already have run is replayed, except idempotent tools of servers the user marked trusted."
func TestOnlyTrustedReadOnlyCallsAreRepeated(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake("read", "write")
			var first atomic.Bool
			f.onCall = func(ctx context.Context, tool string, args json.RawMessage) (string, error) {
				if first.CompareAndSwap(false, true) {
					f.kill()
					return hang(ctx, tool, args)
				}
				return "second", nil
			}
			m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, Trusted: trusted}}},
				map[string]*fake{"a": f})
			settled(t, m)
			res, err := m.CallTool(t.Context(), "mcp__a__read", nil)
			if trusted && (err != nil || res.Text() != "second") || !trusted && !errors.Is(err, supervisor.ErrOutcomeUnknown) {
				t.Errorf("trusted=%v, read-only: %v %v", trusted, res, err)
			}
			synctest.Wait()
			eventually(t, "it is back", func() bool { return phase(t, m, "a") == messages.Connected })
			first.Store(false)
			before := f.calls.Load()
			if _, err = m.CallTool(t.Context(), "mcp__a__write", nil); !errors.Is(err, supervisor.ErrOutcomeUnknown) {
				t.Errorf("trusted=%v, write: %v", trusted, err)
			}
			if n := f.calls.Load() - before; n != 1 {
				t.Errorf("a write ran %d times", n)
			}
		})
	}
}

// The tools of a server that is just restarting stay in sight, marked lost; a call of one ends not-sent, or waits.
func TestLostTools(t *testing.T) {
	for _, wait := range []time.Duration{0, 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake("echo")
			m := start(t, supervisor.Config{CallWait: wait}, map[string]*fake{"a": f})
			settled(t, m)
			f.kill()
			synctest.Wait()
			if e, ok := m.Tools().Lookup("mcp__a__echo"); !ok || e.State.String() != "lost" {
				t.Fatalf("right after the death: %v", e)
			}
			_, err := m.CallTool(t.Context(), "mcp__a__echo", nil)
			if wait == 0 && !errors.Is(err, supervisor.ErrNotSent) || wait > 0 && err != nil {
				t.Errorf("callWait %v: %v", wait, err)
			}
			eventually(t, "it is back", func() bool { return phase(t, m, "a") == messages.Connected })
			f.set(func(f *fake) { f.refuse = errors.New("down") })
			f.kill()
			time.Sleep(4 * time.Second)
			if m.Tools().Len() != 1 {
				t.Error("a blip made the tools flap")
			}
			time.Sleep(2 * time.Second)
			if m.Tools().Len() != 0 {
				t.Error("lost tools are still in sight after withdrawAfter")
			}
		})
	}
}

func TestSanitizeAndAllow(t *testing.T) {
	seeds.Shows(t, "001.6.untrusted-results")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo", "secret", "nil")
		refuse := errors.New("not on my watch")
		m := start(t, supervisor.Config{
			Sanitize: func(tool *supervisor.Tool, raw json.RawMessage) json.RawMessage {
				return json.RawMessage(strings.ReplaceAll(string(raw), "ok", "sanitised "+tool.Server))
			},
			Allow: func(_ context.Context, tool *supervisor.Tool, _ json.RawMessage) error {
				if tool.Name == "secret" {
					return &supervisor.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassDenied, Text: "denied", Err: refuse}
				}
				if tool.Name == "nil" {
					var e *supervisor.Error
					return e
				}
				return nil
			},
		}, map[string]*fake{"a": f})
		settled(t, m)
		if res, err := m.CallTool(t.Context(), "mcp__a__echo", nil); err != nil || res.Text() != "sanitised a echo" {
			t.Errorf("%v %v", res, err)
		}
		_, err := m.CallTool(t.Context(), "mcp__a__secret", nil)
		if !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, refuse) || f.calls.Load() != 1 {
			t.Errorf("%v, %d calls reached the server", err, f.calls.Load())
		}
		_, err = m.CallTool(t.Context(), "mcp__a__nil", nil)
		if !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) || errors.Is(err, refuse) || f.calls.Load() != 1 {
			t.Errorf("a nil *Error: %v, %d calls reached the server", err, f.calls.Load())
		}
	})
}

func TestAllowedAndDeniedTools(t *testing.T) {
	seeds.Shows(t, "002.9.allowed-tools")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("get_a", "get_b", "delete_a")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK,
			AllowedTools: []string{"get_*", "delete_a"}, DeniedTools: []string{"delete_*", "get_b"}}}}, map[string]*fake{"a": f})
		settled(t, m)
		if got := strings.Join(names(m), " "); got != "mcp__a__get_a" {
			t.Errorf("offered: %s", got)
		}
		_, err := m.CallServerTool(t.Context(), "a", "delete_a", nil)
		if !errors.Is(err, supervisor.ErrDenied) || !strings.Contains(err.Error(), "deniedTools") {
			t.Errorf("%v", err)
		}
	})
}

func TestLazyServerIsWokenByUseAndRestsAgain(t *testing.T) {
	seeds.Shows(t, "001.4.startup-or-demand", "001.7.lazy")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		dir := t.TempDir()
		cfg := func() supervisor.Config {
			return supervisor.Config{CacheDir: dir, Servers: map[string]supervisor.Spec{
				"a": {Type: messages.SDK, Connect: messages.Lazy, IdleTimeout: supervisor.Duration(time.Minute)}}}
		}
		m := start(t, cfg(), map[string]*fake{"a": f})
		settled(t, m) // its tools are not known: it is dialled once
		if f.dials.Load() != 1 {
			t.Fatalf("%d dials", f.dials.Load())
		}
		time.Sleep(3 * time.Minute)
		if st, _ := m.ServerStatus("a"); st.Step != messages.Idle || f.alive.Load() != 0 {
			t.Fatalf("not let go after its idle timeout: %+v, %d alive", st, f.alive.Load())
		}
		e, ok := m.Tools().Lookup("mcp__a__echo")
		if !ok || e.State.String() != "cached" {
			t.Fatalf("its tools: %v", e)
		}
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := m.CallTool(t.Context(), "mcp__a__echo", nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if f.dials.Load() != 2 {
			t.Errorf("ten calls woke it with %d dials, want one", f.dials.Load()-1)
		}
		closeAll(t, m)

		m = start(t, cfg(), map[string]*fake{"a": f})
		settled(t, m)
		if f.dials.Load() != 2 {
			t.Error("a lazy server whose tools are cached on disk was dialled at the start")
		}
		if _, err := m.CallServerTool(t.Context(), "a", "echo", nil); err != nil || f.dials.Load() != 3 {
			t.Errorf("first use: %v, %d dials", err, f.dials.Load())
		}
	})
}

func TestAgentToolsBridge(t *testing.T) {
	seeds.Shows(t, "002.10.unit")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo", "fail")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		tools, err := m.AgentTools(t.Context(), "a")
		if err != nil || len(tools) != 2 {
			t.Fatal(tools, err)
		}
		d := tools[0].Declaration()
		if d.Name != "mcp__a__echo" || string(d.InputSchema) != `{"type":"object"}` {
			t.Errorf("%+v", d)
		}
		out, err := tools[0].Handler()(t.Context(), map[string]any{"x": 1})
		if err != nil || out["isError"] != false || tools[0].FormatOutput(out) != "ok echo" {
			t.Errorf("%v %v", out, err)
		}
		out, err = tools[1].Handler()(t.Context(), nil)
		if err != nil || out["isError"] != true || tools[1].FormatOutput(out) != "error: ok fail" {
			t.Errorf("%v %v", out, err)
		}
		if _, err := m.AgentTools(t.Context(), "nobody"); !errors.Is(err, supervisor.ErrUnknownServer) {
			t.Error(err)
		}
	})
}

// TestAnAnswerThatCannotBeUsedEndsTheCall: the read of a trusted server was answered with what is no answer, on a connection that
// stands. It was said so only seconds later, when no other connection had come.
func TestAnAnswerThatCannotBeUsedEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("read")
		f.babble = true
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, Trusted: true}}}, map[string]*fake{"a": f})
		settled(t, m)
		began := time.Now()
		_, err := m.CallTool(t.Context(), "mcp__a__read", nil)
		if took := time.Since(began); !errors.Is(err, supervisor.ErrOutcomeUnknown) || messages.ClassOf(err) != messages.ClassProtocol || took != 0 {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

// brokenSecondConn is a transport whose second connection sends no call: it is there, and what is called cannot be written.
type brokenSecondConn struct {
	transports.Transport
	dials *atomic.Int64
}

func (a brokenSecondConn) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	conn, err := a.Transport.Dial(ctx, sink)
	if a.dials.Add(1) == 1 || err != nil {
		return conn, err
	}
	return speechless{conn}, nil
}

type speechless struct{ transports.Conn }

func (s speechless) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	if m.Method == "tools/call" {
		return transports.NotWritten, &transports.Error{Class: messages.ClassNetwork, Text: "it cannot be written"}
	}
	return s.Conn.Send(ctx, m)
}

// TestARepetitionThatWasNotSentLeavesTheFirstUnknown: the read of a trusted server was sent, the server died, and the
// repetition could not be written. What its caller must know is that it may have run, and not that the last try did not.
func TestARepetitionThatWasNotSentLeavesTheFirstUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dials := newFake("read"), new(atomic.Int64)
		f.onCall = hang
		m, err := supervisor.Start(t.Context(), supervisor.Config{
			Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, Trusted: true}},
			Transport: func(string, supervisor.Spec) (transports.Transport, error) {
				return brokenSecondConn{inprocess.New(f.serve), dials}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer closeAll(t, m)
		settled(t, m)
		ended := make(chan error, 1)
		go func() {
			_, err := m.CallTool(context.Background(), "mcp__a__read", nil)
			ended <- err
		}()
		synctest.Wait()
		f.kill()
		err = <-ended
		if !errors.Is(err, supervisor.ErrOutcomeUnknown) || errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("%v", err)
		}
		if err == nil || !strings.Contains(err.Error(), "the first one may have run") {
			t.Errorf("the error does not tell of the first: %v", err)
		}
		if n := dials.Load(); n != 2 {
			t.Errorf("%d connections: it was not repeated", n)
		}
	})
}

// TestCallWaitIsNotOverrun: a call, or a read, of a server that is on its way back waits for as long as was said and no longer,
// also if that is less than a second.
func TestCallWaitIsNotOverrun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		m := start(t, supervisor.Config{CallWait: 300 * time.Millisecond}, map[string]*fake{"a": f})
		if err := m.Settled(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.set(func(f *fake) { f.mute = true }) // it comes back and answers nothing
		f.kill()
		synctest.Wait()
		for what, send := range map[string]func() error{
			"call": func() error { _, err := m.CallTool(t.Context(), "mcp__a__x", nil); return err },
			"read": func() error { _, err := m.ReadServerResource(t.Context(), "a", "x:///1"); return err },
		} {
			began := time.Now()
			if err := send(); !errors.Is(err, supervisor.ErrNotSent) || time.Since(began) != 300*time.Millisecond {
				t.Errorf("the %s ended after %v: %v", what, time.Since(began), err)
			}
		}
	})
}
