package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// TestAFunctionThatAnswersServersAndBehavesBadly: a function that does not return is left when its server's connection ends: the server
// connects again, the other one can be called, and the manager closes. It once held all three. One that ends its goroutine, or panics,
// answers its server at once; an ended goroutine once left the server without an answer.
func TestAFunctionThatAnswersServersAndBehavesBadly(t *testing.T) {
	for method, question := range map[string]struct {
		params any
		hook   func(c *supervisor.Config, do func())
	}{
		"elicitation/create": {map[string]any{"message": "?", "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}},
			func(c *supervisor.Config, do func()) {
				c.Elicit = func(context.Context, supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
					do()
					return supervisor.ElicitResult{}, nil
				}
			}},
		"sampling/createMessage": {map[string]any{"messages": []any{}, "maxTokens": 1}, func(c *supervisor.Config, do func()) {
			c.Sample = func(context.Context, supervisor.SampleRequest) (json.RawMessage, error) { do(); return nil, nil }
		}},
		"roots/list": {nil, func(c *supervisor.Config, do func()) {
			c.Roots = func(context.Context, string) ([]supervisor.Root, error) { do(); return nil, nil }
		}},
	} {
		for misdeed, do := range map[string]func(stuck chan struct{}){
			"does not return":    func(stuck chan struct{}) { <-stuck },
			"panics":             func(chan struct{}) { panic("ouch") },
			"ends its goroutine": func(chan struct{}) { runtime.Goexit() },
		} {
			t.Run(method+" "+misdeed, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					stuck := make(chan struct{})
					defer close(stuck)
					var cfg supervisor.Config
					question.hook(&cfg, func() { do(stuck) })
					bad, good := supervisortest.NewServer("bad", supervisortest.Echo("x")), supervisortest.NewServer("good", supervisortest.Echo("x"))
					m := supervisortest.StartConfig(t, cfg, bad, good)
					asked := make(chan error, 1)
					go func() {
						_, err := bad.Ask(context.WithoutCancel(t.Context()), method, question.params)
						asked <- err
					}()
					synctest.Wait()
					if misdeed != "does not return" {
						select {
						case err := <-asked:
							if err == nil {
								t.Error("the question was answered")
							}
						default:
							t.Error("the server waits for its answer")
						}
					}
					began := time.Now()
					if _, err := m.CallServerTool(t.Context(), "good", "x", nil); err != nil || time.Since(began) > 0 {
						t.Errorf("the other server, after %v: %v", time.Since(began), err)
					}
					bad.Crash()
					synctest.Wait()
					if err := m.Reconnect(t.Context(), "bad"); err != nil || time.Since(began) > 5*time.Second {
						t.Errorf("its next connection, after %v: %v", time.Since(began), err)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
					defer cancel()
					began = time.Now()
					if err := m.Close(ctx); err != nil || time.Since(began) > 5*time.Second {
						t.Errorf("closed after %v: %v", time.Since(began), err)
					}
				})
			})
		}
	}
}

// TestTheLogNamesTheFunctionThatPanicked: a question that the caller's own function answers is not blamed on Config.Elicit; it once was.
func TestTheLogNamesTheFunctionThatPanicked(t *testing.T) {
	core, log := observer.New(zap.ErrorLevel)
	var asks *supervisortest.Server
	asks = supervisortest.NewServer("asks", supervisortest.Func("ask", func(ctx context.Context, _ supervisortest.Call) (string, error) {
		_, err := asks.Ask(ctx, "elicitation/create",
			map[string]any{"message": "?", "requestedSchema": map[string]any{"type": "object", "properties": map[string]any{}}})
		return "asked", err
	}))
	m := supervisortest.StartConfig(t, supervisor.Config{
		Logger: zap.New(core),
		Elicit: func(context.Context, supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			panic("of the program")
		},
	}, asks)
	ctx := supervisor.ElicitedBy(t.Context(), func(context.Context, supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
		panic("of the caller")
	})
	for _, call := range []struct {
		ctx             context.Context
		function, cause string
	}{{ctx, "the function given to ElicitedBy", "of the caller"}, {t.Context(), "Config.Elicit", "of the program"}} {
		_, _ = m.CallServerTool(call.ctx, "asks", "ask", nil) // the server says as it likes that it got no answer
		entries := log.TakeAll()
		if len(entries) != 1 || entries[0].Message != call.function+" panicked" || entries[0].ContextMap()["panic"] != call.cause {
			t.Errorf("%s: %+v", call.function, entries)
		}
	}
}

// badStore is a store of which every method does what the test says.
type badStore struct {
	*auth.Memory
	do func()
}

func (s badStore) Get(ctx context.Context, key string) ([]byte, error) {
	s.do()
	return s.Memory.Get(ctx, key)
}

// TestCredentialsThatDoNotCome: a store of sign-ins, and a function that gives Authorizers, that do not return, panic or end their goroutine
// cost their own server its attempt, which ends with a reason in its time; the other one can be called, and the manager closes.
func TestCredentialsThatDoNotCome(t *testing.T) {
	for misdeed, do := range misdeeds(t) {
		for option, set := range map[string]func(c *supervisor.Config){
			"AuthStore": func(c *supervisor.Config) { c.AuthStore = badStore{auth.NewMemory(), do} },
			"AuthProvider": func(c *supervisor.Config) {
				c.AuthProvider = func(string, supervisor.Spec) (transports.Authorizer, error) { do(); return nil, nil }
			},
		} {
			t.Run(option+" "+misdeed, func(t *testing.T) {
				d := newHeaderServer(t, "Authorization", "Bearer other")
				spec := d.spec(&supervisor.Auth{Type: "oauth"})
				spec.ConnectTimeout = supervisor.Duration(100 * time.Millisecond)
				cfg := supervisortest.AddTo(supervisor.Config{Servers: map[string]supervisor.Spec{"bad": spec}}, supervisortest.NewServer("good", supervisortest.Echo("x")))
				set(&cfg)
				m := startWith(t, cfg)
				if err := m.Ready(t.Context(), "good"); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the failure of bad", func() bool {
					st, err := m.ServerStatus("bad")
					return err == nil && (st.Attempts > 0 || st.Status == messages.NeedsAuth)
				})
				st, err := m.ServerStatus("bad")
				if err != nil || st.Class != messages.ClassTimeout && !strings.Contains(st.Error, "Config."+option) {
					t.Errorf("%s: %s, %v", st.Class, st.Error, err)
				}
				var e *supervisor.Error
				if _, err := m.CallServerTool(t.Context(), "bad", "x", nil); !errors.As(err, &e) || !errors.Is(err, supervisor.ErrNotSent) || e.Server != "bad" {
					t.Errorf("%#v", err)
				}
				if _, err := m.CallServerTool(t.Context(), "good", "x", nil); err != nil {
					t.Error(err)
				}
				if err := m.Close(context.Background()); err != nil { // the test's own bound is the only one
					t.Error(err)
				}
			})
		}
	}
}
