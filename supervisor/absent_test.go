package supervisor_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports"
)

// both calls a tool in both ways.
func both(t *testing.T, m *supervisor.Manager, server, tool string, then func(way string, took time.Duration, err error)) {
	t.Helper()
	began := time.Now()
	_, err := m.CallTool(t.Context(), messages.Naming{}.Tool(server, tool), nil)
	then("by name", time.Since(began), err)
	began = time.Now()
	_, err = m.CallServerTool(t.Context(), server, tool, nil)
	then("by server", time.Since(began), err)
}

// A server that is down longer than its tools stay in sight is said to be down, and when it is tried again.
func TestAServerThatIsDownIsSaidToBeDown(t *testing.T) {
	for _, server := range []string{"a", "my server", strings.Repeat("long", 20)} { // plain, replaced, cut
		synctest.Test(t, func(t *testing.T) {
			f := newFake("x")
			m := start(t, supervisor.Config{}, map[string]*fake{server: f, "b": newFake("x")})
			settled(t, m)
			f.set(func(f *fake) { f.refuse = errors.New("down") })
			f.kill()
			eventually(t, "it is withdrawn and waits", func() bool {
				st := status(t, m, server)
				return len(m.Tools().Server(server)) == 0 && st.Status == messages.Failed && time.Until(*st.NextAttempt) > time.Second
			})
			both(t, m, server, "x", func(way string, took time.Duration, err error) {
				var e *supervisor.Error
				if !errors.As(err, &e) || e.Outcome != messages.OutcomeNotSent || errors.Is(err, supervisor.ErrUnknownTool) ||
					e.Class == messages.ClassInvalid || e.Server != server || e.Tool != "x" {
					t.Fatalf("%s: %#v", way, err)
				}
				if at := *status(t, m, server).NextAttempt; !time.Now().Add(e.RetryAfter).Equal(at) || took != 0 {
					t.Errorf("%s: after %v: the next attempt is at %v, and the error says in %v", way, took, at, e.RetryAfter)
				}
			})
			for name, typo := range map[string]string{"a tool": messages.Naming{}.Tool("b", "y"), "a server": "mcp__c__x", "all": "x"} {
				var e *supervisor.Error
				if _, err := m.CallTool(t.Context(), typo, nil); !errors.As(err, &e) || !errors.Is(err, supervisor.ErrUnknownTool) ||
					e.Class != messages.ClassInvalid || e.RetryAfter != 0 {
					t.Errorf("%s is misspelt: %#v", name, err)
				}
			}
		})
	}
}

// CallWait counts for the server, whether or not its tools are in sight.
func TestCallWaitIsForTheServer(t *testing.T) {
	down := func(t *testing.T, wait time.Duration) (*supervisor.Manager, *fake) {
		f := newFake("x")
		m := start(t, supervisor.Config{CallWait: wait}, map[string]*fake{"a": f})
		settled(t, m)
		f.set(func(f *fake) { f.refuse = errors.New("down") })
		f.kill()
		eventually(t, "it is withdrawn and waits", func() bool {
			st := status(t, m, "a")
			return m.Tools().Len() == 0 && st.Status == messages.Failed && time.Until(*st.NextAttempt) > time.Second
		})
		return m, f
	}
	t.Run("it comes back", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, f := down(t, time.Minute)
			next := *status(t, m, "a").NextAttempt
			f.set(func(f *fake) { f.refuse = nil })
			both(t, m, "a", "x", func(way string, took time.Duration, err error) {
				if late := time.Since(next); err != nil || late < 0 || late > time.Second {
					t.Errorf("%s: %v after it was to be tried: %v", way, late, err)
				}
			})
		})
	})
	t.Run("it does not", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, _ := down(t, 3*time.Second)
			both(t, m, "a", "x", func(way string, took time.Duration, err error) {
				if !errors.Is(err, supervisor.ErrNotSent) || took != 3*time.Second {
					t.Errorf("%s: after %v: %v", way, took, err)
				}
			})
		})
	})
	t.Run("it is parked until later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, f := down(t, 30*time.Second)
			eventually(t, "parked", func() bool {
				time.Sleep(time.Second)
				return status(t, m, "a").Retry == messages.RetryParked
			})
			both(t, m, "a", "x", func(way string, took time.Duration, err error) {
				var e *supervisor.Error
				if !errors.As(err, &e) || took != 0 || e.RetryAfter < time.Minute {
					t.Errorf("%s: after %v: %v", way, took, err)
				}
			})
			f.set(func(f *fake) { f.refuse = nil })
			time.Sleep(time.Until(*status(t, m, "a").NextAttempt) - 20*time.Second)
			both(t, m, "a", "x", func(way string, took time.Duration, err error) {
				if err != nil {
					t.Errorf("%s: after %v: %v", way, took, err)
				}
			})
		})
	})
	t.Run("this machine cannot start it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m := start(t, supervisor.Config{CallWait: time.Minute, Transport: func(string, supervisor.Spec) (transports.Transport, error) {
				return refusing{&transports.Error{Class: messages.ClassExhausted, Text: "no file descriptors are left"}}, nil
			}}, map[string]*fake{"a": newFake("x")})
			settled(t, m)
			both(t, m, "a", "x", func(way string, took time.Duration, err error) {
				var e *supervisor.Error
				if !errors.As(err, &e) || e.Class != messages.ClassExhausted || e.Outcome != messages.OutcomeNotSent || took != 0 || e.RetryAfter <= 0 ||
					!strings.Contains(e.Error(), "no file descriptors are left") {
					t.Errorf("%s: after %v: %v", way, took, err)
				}
			})
		})
	})
	t.Run("disabled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			m, _ := down(t, time.Minute)
			if err := m.Disconnect(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			both(t, m, "a", "x", func(way string, took time.Duration, err error) {
				if !errors.Is(err, supervisor.ErrDisabled) || took != 0 {
					t.Errorf("%s: after %v: %v", way, took, err)
				}
			})
		})
	})
}

// At the start no tool is known yet: a call waits for its server all the same.
func TestCallWaitAtTheStart(t *testing.T) {
	for _, server := range []string{"a", "my server"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake("x")
			f.delay = 2 * time.Second
			m := start(t, supervisor.Config{CallWait: 10 * time.Second}, map[string]*fake{server: f})
			both(t, m, server, "x", func(way string, took time.Duration, err error) {
				if err != nil || took > 2*time.Second {
					t.Errorf("%s: after %v: %v", way, took, err)
				}
			})
		})
		synctest.Test(t, func(t *testing.T) {
			f := newFake("x")
			f.delay = 2 * time.Second
			m := start(t, supervisor.Config{}, map[string]*fake{server: f})
			both(t, m, server, "x", func(way string, took time.Duration, err error) {
				var e *supervisor.Error
				if !errors.As(err, &e) || e.Server != server || errors.Is(err, supervisor.ErrUnknownTool) || took != 0 {
					t.Errorf("%s: after %v: %v", way, took, err)
				}
			})
		})
	}
}

// A server that came back for less than a moment is in the catalog as lost: who has waited for it since before does not wait again.
func TestCallWaitIsOneWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		f.refuse = errors.New("down")
		patient := restart.DefaultPolicy()
		patient.StdioPark, patient.NetworkPark = 1000, 1000
		cfg := supervisor.Config{CallWait: time.Minute, WithdrawAfter: time.Hour, Restart: patient, ActorOptions: slowRegistry}
		m := start(t, cfg, map[string]*fake{"a": f})
		done, began := make(chan error, 1), time.Now()
		go func() {
			_, err := m.CallServerTool(t.Context(), "a", "x", nil)
			done <- err
		}()
		time.Sleep(10 * time.Second)
		f.set(func(f *fake) { f.refuse = nil })
		eventually(t, "it has sent its list", func() bool { return f.lists.Load() > 0 })
		f.set(func(f *fake) { f.refuse = errors.New("down") })
		f.kill()
		if err := <-done; !errors.Is(err, supervisor.ErrNotSent) || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if m.Tools().Len() != 1 {
			t.Errorf("%d tools are in sight", m.Tools().Len())
		}
	})
}

// slowRegistry lets the registry need some time for each message, so that a server can be lost before its tools are in the catalog.
func slowRegistry(name string) []actor.PropsOption {
	if name != "registry" {
		return nil
	}
	return []actor.PropsOption{actor.WithReceiverMiddleware(func(next actor.ReceiverFunc) actor.ReceiverFunc {
		return func(c actor.ReceiverContext, e *actor.MessageEnvelope) {
			time.Sleep(300 * time.Millisecond)
			next(c, e)
		}
	})}
}

// Who asks for a server is not told that it is connected when it was lost before it was seen as connected.
func TestAConnectionThatIsLostAtOnceIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x")
		cfg := supervisor.Config{ActorOptions: slowRegistry, Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, Disabled: true}}}
		m := start(t, cfg, map[string]*fake{"a": f})
		settled(t, m)
		done := make(chan error, 1)
		go func() { done <- m.Toggle(t.Context(), "a", true) }()
		eventually(t, "it has sent its list", func() bool { return f.lists.Load() > 0 })
		f.kill()
		var e *supervisor.Error
		if err := <-done; !errors.As(err, &e) || e.Server != "a" || e.Op != "enable" || !strings.Contains(e.Text, "killed") {
			t.Errorf("%v", err)
		}
	})
}
