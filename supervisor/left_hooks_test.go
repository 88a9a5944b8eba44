package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// TestAnInterceptorThatNeverReturnsCostsItsServerAlone: after 256 calls whose interceptor has not returned, its server's calls are refused
// at once, by either name; those of the other server go on. What the interceptors do when they come back at last reaches no server.
func TestAnInterceptorThatNeverReturnsCostsItsServerAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		bad, good := supervisortest.NewServer("bad", supervisortest.Echo("x")), supervisortest.NewServer("good", supervisortest.Echo("x"))
		m := supervisortest.StartConfig(t, supervisor.Config{Interceptors: []supervisor.Interceptor{
			func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
				if r.Server != "good" && r.Name != "mcp__good__x" {
					<-stuck
				}
				return next(context.WithoutCancel(ctx), r)
			},
		}}, bad, good)
		call := func(server, tool string) (*supervisor.Error, time.Duration) {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var err error
			if server == "" {
				_, err = m.CallTool(ctx, tool, nil)
			} else {
				_, err = m.CallServerTool(ctx, server, tool, nil)
			}
			e, _ := errors.AsType[*supervisor.Error](err)
			return e, time.Since(began)
		}
		for i := range 256 {
			server, tool := "bad", "x"
			if i%2 == 0 {
				server, tool = "", "mcp__bad__x"
			}
			e, took := call(server, tool)
			if !errors.Is(e, supervisor.ErrNotSent) || !errors.Is(e, context.DeadlineExceeded) || e.Server != "bad" || e.Tool != "x" || took > 1200*time.Millisecond {
				t.Fatalf("call %d after %v: %#v", i, took, e)
			}
		}
		for _, server := range []string{"", "bad"} {
			tool := "x"
			if server == "" {
				tool = "mcp__bad__x"
			}
			if e, took := call(server, tool); e == nil || e.Class != messages.ClassExhausted || e.Outcome != messages.OutcomeNotSent || e.Server != "bad" || took > 0 {
				t.Errorf("one more, after %v: %#v", took, e)
			}
		}
		for _, tool := range []string{"mcp__good__x", "x"} {
			server := "good"
			if tool != "x" {
				server = ""
			}
			if e, took := call(server, tool); e != nil || took > 0 {
				t.Errorf("the other server, after %v: %#v", took, e)
			}
		}
		close(stuck)
		synctest.Wait()
		if len(bad.Calls()) > 0 {
			t.Errorf("%d calls were sent after they had ended", len(bad.Calls()))
		}
		// They have returned, so that there is room again.
		if e, took := call("bad", "x"); e != nil || took > 0 {
			t.Errorf("in the end, after %v: %#v", took, e)
		}
	})
}

// TestCloseEndsACallWhoseFunctionBlocks: a call without a deadline ends with the manager, whichever function of the program blocks. Its
// error names the server and the tool, also where the call named neither: a closed manager knows no server any more.
func TestCloseEndsACallWhoseFunctionBlocks(t *testing.T) {
	for name, hook := range map[string]func(c *supervisor.Config, stuck <-chan struct{}){
		"interceptor": func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Interceptors = []supervisor.Interceptor{func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
				<-stuck
				return next(ctx, r)
			}}
		},
		"Allow": func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Allow = func(context.Context, *supervisor.Tool, json.RawMessage) error { <-stuck; return nil }
		},
		"Ask": func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Access = access.Rules{Own: access.Set{Rules: []access.Rule{access.MustParse(access.Ask, "s:*")}}}
			c.Ask = func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
				<-stuck
				return supervisor.AskOnce, nil
			}
		},
		"Sanitize": func(c *supervisor.Config, stuck <-chan struct{}) {
			c.Sanitize = func(_ *supervisor.Tool, raw json.RawMessage) json.RawMessage { <-stuck; return raw }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := make(chan struct{})
				var cfg supervisor.Config
				hook(&cfg, stuck)
				long := strings.Repeat("long", 20) // its qualified name is shortened, and says neither server nor tool
				m := supervisortest.StartConfig(t, cfg, supervisortest.NewServer("s", supervisortest.Echo("x"), supervisortest.Echo(long)))
				type end struct {
					tool string
					err  error
				}
				ends := make(chan end, 3)
				call := func(tool string, call func() (*supervisor.Result, error)) {
					go func() {
						_, err := call()
						ends <- end{tool, err}
					}()
				}
				call("x", func() (*supervisor.Result, error) { return m.CallServerTool(context.Background(), "s", "x", nil) })
				for e := range m.Tools().All() {
					call(e.Tool.Name, func() (*supervisor.Result, error) {
						return m.CallTool(context.Background(), e.Name, json.RawMessage(`{"n":1}`))
					})
				}
				synctest.Wait()
				if err := m.Close(t.Context()); err != nil {
					t.Error(err)
				}
				want := supervisor.ErrNotSent
				if name == "Sanitize" {
					want = supervisor.ErrOutcomeUnknown
				}
				for range 3 {
					end := <-ends
					e, ok := errors.AsType[*supervisor.Error](end.err)
					if !ok || !errors.Is(e, supervisor.ErrClosed) || !errors.Is(e, want) || e.Server != "s" || e.Tool != end.tool {
						t.Errorf("%s: %#v", end.tool, end.err)
					}
				}
				close(stuck)
			})
		})
	}
}

// TestSanitizeHasTheServersTime: a caller without a deadline waits for Config.Sanitize as long as for the server's answer, at most.
func TestSanitizeHasTheServersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		cfg := supervisortest.AddTo(supervisor.Config{
			Sanitize: func(_ *supervisor.Tool, raw json.RawMessage) json.RawMessage { <-stuck; return raw },
		}, supervisortest.NewServer("s", supervisortest.Echo("x")))
		spec := cfg.Servers["s"]
		spec.CallTimeout = messages.Duration(7 * time.Second)
		cfg.Servers["s"] = spec
		m, err := supervisor.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = m.CallServerTool(context.Background(), "s", "x", nil)
		if took := time.Since(began); !errors.Is(err, supervisor.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) || took != 7*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		close(stuck)
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
