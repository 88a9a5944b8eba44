package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// rules reads "deny a:x | ask mcp__b | default ask".
func rules(t testing.TB, text string) (s access.Set) {
	t.Helper()
	for word := range strings.SplitSeq(text, "|") {
		verdict, rule, _ := strings.Cut(strings.TrimSpace(word), " ")
		switch verdict {
		case "":
		case "default":
			s.Default = access.Verdict(rule)
		default:
			r, err := access.Parse(access.Verdict(verdict), rule)
			if err != nil {
				t.Fatal(err)
			}
			r.Source = access.Source{File: "/f.json", Line: 1, Col: 2, Scope: messages.ScopeUser}
			s.Rules = append(s.Rules, r)
		}
	}
	return s
}

func ownRules(t testing.TB, text string) access.Rules { return access.Rules{Own: rules(t, text)} }

// TestRulesDecideAboutCalls: a denied call is not sent and says which rule decided and where that stands; what can only
// be denied is not offered, whatever way it is asked for.
func TestRulesDecideAboutCalls(t *testing.T) {
	seeds.Shows(t, "002.9.permission-rules")
	synctest.Test(t, func(t *testing.T) {
		f := newFake("get", "delete", "write")
		r := ownRules(t, "deny mcp__a__delete | deny a:write(path:/etc/*)")
		r.Managed = rules(t, "allow a:write(path:/etc/motd)")
		m := start(t, supervisor.Config{Access: r}, map[string]*fake{"a": f})
		settled(t, m)
		if got := strings.Join(names(m), " "); got != "mcp__a__get mcp__a__write" {
			t.Errorf("offered: %s", got)
		}
		st, _ := m.ServerStatus("a")
		if len(st.Tools) != 2 || len(st.Quarantined) != 1 || st.Quarantined[0].By != messages.QuarantinedByRule ||
			st.Quarantined[0].Reason != "denied: the rule deny mcp__a__delete (/f.json:1:2, user)" {
			t.Errorf("%+v", st)
		}
		for _, call := range []func() error{
			func() error { _, err := m.CallTool(t.Context(), "mcp__a__delete", nil); return err },
			func() error { _, err := m.CallServerTool(t.Context(), "a", "delete", nil); return err },
		} {
			err := call()
			if !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) ||
				!strings.Contains(err.Error(), `server "a", tool "delete": denied: the rule deny mcp__a__delete (/f.json:1:2, user)`) {
				t.Errorf("%v", err)
			}
		}
		_, err := m.CallServerTool(t.Context(), "a", "write", map[string]any{"path": "/etc/passwd"})
		if !errors.Is(err, supervisor.ErrDenied) || !strings.Contains(err.Error(), "deny a:write(path:/etc/*)") {
			t.Errorf("%v", err)
		}
		if f.calls.Load() != 0 {
			t.Errorf("%d calls were sent", f.calls.Load())
		}
		for _, path := range []string{"/tmp/x", "/etc/motd"} {
			if _, err := m.CallServerTool(t.Context(), "a", "write", map[string]any{"path": path}); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
		if d := m.Decide("a", "write", json.RawMessage(`{"path":"/etc/motd"}`)); d.Verdict != access.Allow ||
			d.Rule != "a:write(path:/etc/motd)" {
			t.Errorf("%+v", d)
		}
		if err := m.Disconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if _, err := m.CallServerTool(t.Context(), "a", "delete", nil); !errors.Is(err, supervisor.ErrDenied) {
			t.Errorf("of a server that is gone: %v", err)
		}
	})
}

// TestAnnotationsOfTrustedServersInformTheDefault and those of others do not.
func TestAnnotationsOfTrustedServersInformTheDefault(t *testing.T) {
	seeds.Shows(t, "000.11.annotations-permission")
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		cfg := supervisor.Config{
			Access:  ownRules(t, "default ask"),
			Servers: map[string]supervisor.Spec{"known": {Type: messages.SDK, Trusted: true}, "other": {Type: messages.SDK}},
			Ask: func(_ context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
				asked = append(asked, r.Server+":"+r.Tool+" "+r.Why)
				return supervisor.AskOnce, nil
			},
		}
		m := start(t, cfg, map[string]*fake{"known": newFake("read", "destroy", "plain"), "other": newFake("read", "destroy")})
		settled(t, m)
		for _, qualified := range []string{"known:read", "known:destroy", "known:plain", "other:read", "other:destroy"} {
			server, tool, _ := strings.Cut(qualified, ":")
			if _, err := m.CallServerTool(t.Context(), server, tool, nil); err != nil {
				t.Errorf("%s: %v", qualified, err)
			}
		}
		want := []string{"known:destroy its trusted server calls it destructive", "known:plain the default is ask",
			"other:read the default is ask", "other:destroy the default is ask"}
		if !slices.Equal(asked, want) {
			t.Errorf("asked %q", asked)
		}
	})
}

// TestWithoutRulesNobodyIsAsked: a program that wants no rules sees none, also of a trusted server.
func TestWithoutRulesNobodyIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, Trusted: true}}},
			map[string]*fake{"a": newFake("destroy")})
		settled(t, m)
		if _, err := m.CallServerTool(t.Context(), "a", "destroy", nil); err != nil {
			t.Error(err)
		}
	})
}

// TestAnswersOfAPerson: once, for the session, no, an error, a panic, no answerer.
func TestAnswersOfAPerson(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Value
		var asked atomic.Int64
		cfg := supervisor.Config{Access: ownRules(t, "ask a:write | default ask"),
			Ask: func(_ context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
				asked.Add(1)
				if rule := map[string]string{"write": "", "get": "a:get"}[r.Tool]; r.Rule != rule {
					t.Errorf("the rule for %s is %q", r.Tool, r.Rule)
				}
				switch a := answer.Load().(string); a {
				case "error":
					return supervisor.AskOnce, errors.New("the window was closed")
				case "panic":
					panic("oh")
				default:
					return supervisor.AskAnswer(a), nil
				}
			}}
		f := newFake("get", "write")
		m := start(t, cfg, map[string]*fake{"a": f})
		settled(t, m)
		for _, c := range []struct {
			answer, tool, fault string
			asks                int64
		}{
			{"no", "get", "and the answer was no (not sent); allow it with the rule a:get", 1},
			{"nonsense", "get", "and the answer was no", 1},
			{"error", "get", "the window was closed", 1},
			{"panic", "get", "the function that asks panicked", 1},
			{"once", "get", "", 1},
			{"no", "get", "and the answer was no", 1},
			{"session", "get", "", 1},
			{"no", "get", "", 0},
			{"no", "write", "because the rule ask a:write (/f.json:1:2, user)", 1},
			{"always", "write", "", 1},
			{"no", "write", "", 0},
		} {
			answer.Store(c.answer)
			before, sent := asked.Load(), f.calls.Load()
			_, err := m.CallServerTool(t.Context(), "a", c.tool, nil)
			if got := asked.Load() - before; got != c.asks {
				t.Errorf("%s %s: asked %d times", c.answer, c.tool, got)
			}
			if c.fault == "" {
				if err != nil {
					t.Errorf("%s %s: %v", c.answer, c.tool, err)
				}
			} else if !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) ||
				!strings.Contains(err.Error(), c.fault) || f.calls.Load() != sent {
				t.Errorf("%s %s: %v", c.answer, c.tool, err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{Access: ownRules(t, "ask mcp__a")}, map[string]*fake{"a": newFake("get")})
		settled(t, m)
		_, err := m.CallServerTool(t.Context(), "a", "get", nil)
		if !errors.Is(err, supervisor.ErrDenied) || !strings.Contains(err.Error(), "and nobody can be asked here") {
			t.Errorf("%v", err)
		}
	})
}

// TestEqualAsksAreOneQuestion, however many callers there are; if the one who asked goes away the next one asks.
func TestEqualAsksAreOneQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		release := make(chan struct{})
		cfg := supervisor.Config{Access: ownRules(t, "default ask"),
			Ask: func(ctx context.Context, _ supervisor.AskRequest) (supervisor.AskAnswer, error) {
				asked.Add(1)
				select {
				case <-release:
					return supervisor.AskOnce, nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}}
		m := start(t, cfg, map[string]*fake{"a": newFake("get")})
		settled(t, m)
		first, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := m.CallServerTool(first, "a", "get", map[string]any{"n": 1}); !errors.Is(err, context.Canceled) ||
				!errors.Is(err, supervisor.ErrNotSent) {
				t.Errorf("the one who left: %v", err)
			}
		})
		synctest.Wait()
		for range 20 {
			wg.Go(func() {
				if _, err := m.CallServerTool(t.Context(), "a", "get", map[string]any{"n": 1}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if _, err := m.CallServerTool(t.Context(), "a", "get", map[string]any{"n": 2}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if n := asked.Load(); n != 2 {
			t.Errorf("%d questions, not 2", n)
		}
		leave()
		synctest.Wait()
		if n := asked.Load(); n != 3 {
			t.Errorf("%d questions after the first caller left, not 3", n)
		}
		close(release)
		wg.Wait()
	})
}

// A call that no longer waits for the answer counts no more.
func TestWhoLeavesAQuestionIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts := make(chan func() int, 1)
		release := make(chan struct{})
		m := start(t, supervisor.Config{Access: ownRules(t, "default ask"),
			Ask: func(_ context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
				counts <- r.Count
				<-release
				return supervisor.AskAll, nil
			}}, map[string]*fake{"a": newFake("get")})
		settled(t, m)
		var wg sync.WaitGroup
		call := func(ctx context.Context, want error) {
			wg.Go(func() {
				if _, err := m.CallServerTool(ctx, "a", "get", nil); !errors.Is(err, want) {
					t.Errorf("a call ended as %v, not %v", err, want)
				}
			})
			synctest.Wait()
		}
		call(t.Context(), nil)
		count := <-counts
		leaving, leave := context.WithCancel(t.Context())
		call(leaving, context.Canceled)
		call(t.Context(), nil)
		if n := count(); n != 3 {
			t.Errorf("%d calls wait, not 3", n)
		}
		leave()
		synctest.Wait()
		if n := count(); n != 2 {
			t.Errorf("%d calls wait after one left, not 2", n)
		}
		close(release)
		wg.Wait()
	})
}

// TestAPersonTakesNoneOfTheCallsTime: the server's callTimeout begins after the answer; the caller's own time does not
// wait.
func TestAPersonTakesNoneOfTheCallsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := supervisor.Config{Access: ownRules(t, "default ask"),
			Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, CallTimeout: supervisor.Duration(time.Second)}},
			Ask: func(ctx context.Context, _ supervisor.AskRequest) (supervisor.AskAnswer, error) {
				time.Sleep(time.Hour)
				return supervisor.AskOnce, nil
			}}
		m := start(t, cfg, map[string]*fake{"a": newFake("get")})
		settled(t, m)
		if _, err := m.CallServerTool(t.Context(), "a", "get", nil); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := m.CallServerTool(ctx, "a", "get", nil)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, supervisor.ErrNotSent) || time.Since(began) != time.Minute {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		time.Sleep(2 * time.Hour) // the person does not answer
	})
}

// TestQuestionsAreBounded, and Close ends those that are open.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := supervisor.Config{Access: ownRules(t, "default ask"),
			Ask: func(ctx context.Context, _ supervisor.AskRequest) (supervisor.AskAnswer, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}}
		m := start(t, cfg, map[string]*fake{"a": newFake("get")})
		settled(t, m)
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				if _, err := m.CallServerTool(t.Context(), "a", "get", map[string]any{"n": i}); !errors.Is(err, supervisor.ErrClosed) {
					t.Errorf("%v", err)
				}
			})
		}
		synctest.Wait()
		_, err := m.CallServerTool(t.Context(), "a", "get", map[string]any{"n": 64})
		if !errors.Is(err, supervisor.ErrDenied) || !strings.Contains(err.Error(), "64 questions wait") {
			t.Errorf("%v", err)
		}
		closeAll(t, m)
		wg.Wait()
	})
}

// TestRulesAreReplaced: the next call is decided by the new ones, and the catalog shows what they leave.
func TestRulesAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("get", "write")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{
			"a": {Type: messages.SDK}, "lazy": {Type: messages.SDK, Connect: messages.Lazy, IdleTimeout: supervisor.Duration(time.Minute)},
		}}, map[string]*fake{"a": f, "lazy": newFake("get", "write")})
		settled(t, m)
		time.Sleep(5 * time.Minute) // one of them rests
		settled(t, m)
		before := m.Tools().Generation()
		if err := m.SetPermissions(t.Context(), ownRules(t, "deny *:write | deny mcp__nobody")); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(m), " "); got != "mcp__a__get mcp__lazy__get" || m.Tools().Generation() == before {
			t.Errorf("offered: %s", got)
		}
		if _, err := m.CallServerTool(t.Context(), "a", "write", nil); !errors.Is(err, supervisor.ErrDenied) {
			t.Errorf("%v", err)
		}
		if _, err := m.CallServerTool(t.Context(), "lazy", "write", nil); !errors.Is(err, supervisor.ErrDenied) {
			t.Errorf("%v", err)
		}
		if n := len(m.Permissions().Own.Rules); n != 2 {
			t.Errorf("%d rules are in force", n)
		}
		if err := m.SetPermissions(t.Context(), access.Rules{}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(names(m), " "); got != "mcp__a__get mcp__a__write mcp__lazy__get mcp__lazy__write" {
			t.Errorf("offered: %s", got)
		}
		if _, err := m.CallServerTool(t.Context(), "a", "write", nil); err != nil {
			t.Error(err)
		}
		if st, _ := m.ServerStatus("lazy"); st.Step != messages.Idle || f.dials.Load() != 1 {
			t.Errorf("the rules have dialled: %s, %d", st.Step, f.dials.Load())
		}
	})
}

// TestReadingFollowsADenyOfTheServer: its resources and prompts are not listed; those of the others are.
func TestReadingFollowsADenyOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("get")
		m := start(t, supervisor.Config{Access: ownRules(t, "deny mcp__a")}, map[string]*fake{"a": f, "b": newFake("get")})
		settled(t, m)
		for what, err := range map[string]error{
			"read":      func() error { _, err := m.ReadServerResource(t.Context(), "a", "x://y"); return err }(),
			"list":      func() error { _, err := m.Resources(t.Context(), "a"); return err }(),
			"prompt":    func() error { _, err := m.GetServerPrompt(t.Context(), "a", "p", nil); return err }(),
			"subscribe": m.SubscribeResource(t.Context(), "a", "x://y"),
		} {
			if !errors.Is(err, supervisor.ErrDenied) || !strings.Contains(err.Error(), "deny mcp__a") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := m.Resources(t.Context()); err != nil {
			t.Errorf("of all: %v", err)
		}
		if _, err := m.Ping(t.Context(), "a"); err != nil || f.reads.Load() != 0 {
			t.Errorf("a sign of life is no reading: %v, %d reads", err, f.reads.Load())
		}
	})
}

// TestRulesCostACallNothing: neither without rules nor where a name decides.
func TestRulesCostACallNothing(t *testing.T) {
	measure := func(r access.Rules) float64 {
		m := start(t, supervisor.Config{Access: r}, map[string]*fake{"a": newFake("get")})
		settled(t, m)
		tool, _ := m.Tools().LookupTool("a", "get")
		args := json.RawMessage(`{"n":1}`)
		return testing.AllocsPerRun(200, func() {
			if err := m.Admit(t.Context(), tool.Tool, args); err != nil {
				t.Fatal(err)
			}
		})
	}
	for name, r := range map[string]access.Rules{"no rules": {}, "by name": ownRules(t, "deny b:* | allow mcp__a | default deny"),
		"by a default": ownRules(t, "default allow")} {
		if n := measure(r); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestOnceIsOneCall: of five equal calls one goes after each "once", the question says how many wait, and "all" lets the
// rest go.
func TestOnceIsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers, counts := make(chan supervisor.AskAnswer), make(chan int, 8)
		cfg := supervisor.Config{Access: ownRules(t, "default ask"),
			Ask: func(_ context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
				answer := <-answers
				counts <- r.Equal()
				return answer, nil
			}}
		a := newFake("pay")
		m := start(t, cfg, map[string]*fake{"a": a})
		settled(t, m)
		var paid atomic.Int64
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := m.CallServerTool(t.Context(), "a", "pay", map[string]any{"amount": 100}); err != nil {
					t.Error(err)
				}
				paid.Add(1)
			})
		}
		synctest.Wait()
		for i, step := range []struct {
			answer      supervisor.AskAnswer
			count, paid int
		}{{supervisor.AskOnce, 5, 1}, {supervisor.AskOnce, 4, 2}, {supervisor.AskAll, 3, 5}} {
			answers <- step.answer
			synctest.Wait()
			if n := <-counts; n != step.count || int(paid.Load()) != step.paid {
				t.Errorf("answer %d: %d were said to wait and %d calls were made, want %d and %d", i+1, n, paid.Load(), step.count, step.paid)
			}
		}
		wg.Wait()
	})
}

// TestOneCallersAnswerIsNoOthers: equal calls of two callers are two questions.
func TestOneCallersAnswerIsNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{Access: ownRules(t, "default ask")}, map[string]*fake{"a": newFake("pay")})
		settled(t, m)
		release := make(chan struct{})
		call := func(answer supervisor.AskAnswer) chan error {
			done := make(chan error, 1)
			ctx := supervisor.AskedBy(t.Context(), func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
				<-release
				return answer, nil
			})
			go func() {
				_, err := m.CallServerTool(ctx, "a", "pay", nil)
				done <- err
			}()
			return done
		}
		ann, bob := call(supervisor.AskAll), call(supervisor.AskNo)
		synctest.Wait()
		close(release)
		if err := <-ann; err != nil {
			t.Error(err)
		}
		if err := <-bob; !errors.Is(err, supervisor.ErrDenied) {
			t.Errorf("what ann answered was taken for bob's answer: %v", err)
		}
	})
}
