package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

func sdk(name string, change ...func(*supervisor.Spec)) supervisor.Spec {
	s := supervisor.Spec{Type: messages.SDK, Name: name, Scope: messages.ScopeUser, Source: "/u/mcp.json"}
	for _, f := range change {
		f(&s)
	}
	return s
}

// tardy answers each call after a while.
func tardy(f *fake, d time.Duration) *fake {
	f.onCall = func(ctx context.Context, _ string, _ json.RawMessage) (string, error) {
		select {
		case <-time.After(d):
			return "done", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return f
}

// call calls in the background.
func call(t *testing.T, m *supervisor.Manager, server, tool string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := m.CallServerTool(t.Context(), server, tool, nil)
		ended <- err
	}()
	synctest.Wait()
	return ended
}

func configured(t *testing.T, m *supervisor.Manager, specs map[string]supervisor.Spec) supervisor.SetServersResult {
	t.Helper()
	res, err := m.Configure(t.Context(), specs)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func status(t *testing.T, m *supervisor.Manager, name string) messages.Status {
	t.Helper()
	st, err := m.ServerStatus(name)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// What a connection does not depend on is changed under it: calls go on, and the next one has the new bounds.
func TestAChangedSpecKeepsTheConnectionThatFitsIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*supervisor.Spec)
		then   func(*testing.T, *supervisor.Manager)
	}{
		{"call timeout", func(s *supervisor.Spec) { s.CallTimeout = messages.Duration(time.Second) },
			func(t *testing.T, m *supervisor.Manager) {
				if _, err := m.CallServerTool(t.Context(), "a", "x", nil); messages.ClassOf(err) != messages.ClassTimeout {
					t.Errorf("a call after the change has the bound from before: %v", err)
				}
			}},
		{"denied tools", func(s *supervisor.Spec) { s.DeniedTools = []string{"y"} },
			func(t *testing.T, m *supervisor.Manager) {
				eventually(t, "y is gone", func() bool { return len(m.Tools().Server("a")) == 1 })
				_, err := m.CallServerTool(t.Context(), "a", "y", nil)
				if !errors.Is(err, supervisor.ErrDenied) || !strings.Contains(err.Error(), "deniedTools") {
					t.Errorf("a denied tool: %v", err)
				}
				if len(status(t, m, "a").Tools) != 1 {
					t.Error("the status shows a tool that is not offered")
				}
			}},
		{"no tool at all", func(s *supervisor.Spec) { s.AllowedTools = []string{} },
			func(t *testing.T, m *supervisor.Manager) {
				eventually(t, "all are gone", func() bool { return len(m.Tools().Server("a")) == 0 })
			}},
		{"disabled", func(s *supervisor.Spec) { s.Disabled = true },
			func(t *testing.T, m *supervisor.Manager) {
				if st := status(t, m, "a"); st.Status != messages.Disabled || !st.Warm {
					t.Errorf("%+v", st)
				}
			}},
		{"trusted and timeouts to come", func(s *supervisor.Spec) {
			s.Trusted, s.ConnectTimeout, s.StopGrace = true, messages.Duration(time.Minute), messages.Duration(time.Second)
		}, func(*testing.T, *supervisor.Manager) {}},
		{"lazy, and at rest after its time", func(s *supervisor.Spec) {
			s.Connect, s.IdleTimeout = messages.Lazy, messages.Duration(time.Minute)
		}, func(t *testing.T, m *supervisor.Manager) {
			time.Sleep(3 * time.Minute)
			if st := status(t, m, "a"); st.Step != messages.Idle {
				t.Errorf("%+v", st)
			}
		}},
		{"another file", func(s *supervisor.Spec) { s.Scope, s.Source = messages.ScopeLocal, "/l/mcp.json" },
			func(t *testing.T, m *supervisor.Manager) {
				if st := status(t, m, "a"); st.Scope != messages.ScopeLocal {
					t.Errorf("scope %s", st.Scope)
				}
			}},
		{"a remark", func(s *supervisor.Spec) { s.Remark = "its entry cannot be used" },
			func(t *testing.T, m *supervisor.Manager) {
				if st := status(t, m, "a"); st.Remark != "its entry cannot be used" {
					t.Errorf("remark %q", st.Remark)
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := tardy(newFake("x", "y"), 5*time.Second)
				m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": sdk("f")}},
					map[string]*fake{"f": f})
				settled(t, m)
				before := status(t, m, "a")
				inFlight := call(t, m, "a", "x")
				res := configured(t, m, map[string]supervisor.Spec{"a": sdk("f", c.change), "f": {Type: messages.SDK}})
				if len(res.Added)+len(res.Removed) > 0 || !slices.Contains(res.Kept, "f") {
					t.Errorf("%+v", res)
				}
				synctest.Wait()
				if err := <-inFlight; err != nil {
					t.Errorf("the call in flight: %v", err)
				}
				if st := status(t, m, "a"); st.Epoch != before.Epoch || f.alive.Load() != 2 {
					t.Errorf("epoch %d before, %d after; %d connections", before.Epoch, st.Epoch, f.alive.Load())
				}
				c.then(t, m)
			})
		})
	}
}

// Narrowed and widened again: the list that the server gave is still known.
func TestOfferedToolsComeBackWithoutAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("x", "y")
		m := start(t, supervisor.Config{Servers: map[string]supervisor.Spec{"a": sdk("f")}}, map[string]*fake{"f": f})
		settled(t, m)
		lists := f.lists.Load()
		for _, c := range []struct {
			denied []string
			left   int
		}{{[]string{"*"}, 0}, {[]string{"x"}, 1}, {nil, 2}} {
			configured(t, m, map[string]supervisor.Spec{"a": sdk("f", func(s *supervisor.Spec) { s.DeniedTools = c.denied })})
			eventually(t, fmt.Sprint("without ", c.denied), func() bool { return len(m.Tools().Server("a")) == c.left })
		}
		if f.lists.Load() != lists {
			t.Errorf("%d lists before, %d after", lists, f.lists.Load())
		}
	})
}

// A server that is replaced or removed lets the calls that were admitted finish, for Timing.Drain at most.
func TestReplacedAndRemovedServersDrain(t *testing.T) {
	for _, c := range []struct {
		name  string
		specs map[string]supervisor.Spec
	}{
		{"replaced", map[string]supervisor.Spec{"a": sdk("f", func(s *supervisor.Spec) { s.MaxMessage = 1 << 20 })}},
		{"removed", map[string]supervisor.Spec{}},
	} {
		for _, takes := range []time.Duration{4 * time.Second, 6 * time.Second} {
			t.Run(fmt.Sprintf("%s, a call takes %s", c.name, takes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := tardy(newFake("x"), takes)
					m := start(t, supervisor.Config{}, map[string]*fake{"f": f})
					configured(t, m, map[string]supervisor.Spec{"a": sdk("f")})
					settled(t, m)
					synctest.Wait() // the attempt whose era was wrong has closed its connection
					f.mostly.Store(f.alive.Load())
					inFlight, began := call(t, m, "a", "x"), time.Now()
					configured(t, m, c.specs)
					synctest.Wait()
					if _, err := m.CallServerTool(t.Context(), "a", "x", nil); !errors.Is(err, supervisor.ErrNotSent) {
						t.Errorf("a call after the change: %v", err)
					}
					err := <-inFlight
					if took := time.Since(began); takes < 5*time.Second && err != nil {
						t.Errorf("a call that ends within the bound: %v", err)
					} else if takes > 5*time.Second && (!errors.Is(err, supervisor.ErrOutcomeUnknown) || took != 5*time.Second) {
						t.Errorf("a call that does not: %v after %s", err, took)
					}
					settled(t, m)
					if st := m.Server("a"); len(c.specs) > 0 && phase(t, m, "a") != messages.Connected {
						t.Errorf("%+v", st)
					}
					if f.mostly.Load() > 1 {
						t.Errorf("%d connections at one time", f.mostly.Load())
					}
				})
			})
		}
	}
}

// Who disabled a server by hand goes on being heard while its file says nothing else about that.
func TestAWishOutlivesAChangedSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{}, map[string]*fake{"f": newFake("x")})
		configured(t, m, map[string]supervisor.Spec{"a": sdk("f")})
		settled(t, m)
		if err := m.Toggle(t.Context(), "a", false); err != nil {
			t.Fatal(err)
		}
		for _, change := range []func(*supervisor.Spec){
			func(s *supervisor.Spec) { s.CallTimeout = 1 },
			func(s *supervisor.Spec) { s.MaxMessage = 1 << 20 },
		} {
			configured(t, m, map[string]supervisor.Spec{"a": sdk("f", change)})
			settled(t, m)
			if phase(t, m, "a") != messages.Disabled {
				t.Fatal("a changed spec enabled what somebody has disabled")
			}
		}
		configured(t, m, map[string]supervisor.Spec{"a": sdk("f", func(s *supervisor.Spec) { s.Disabled = true })})
		configured(t, m, map[string]supervisor.Spec{"a": sdk("f")})
		settled(t, m)
		if phase(t, m, "a") != messages.Connected {
			t.Error("the file has enabled it")
		}
	})
}

// The newest set counts, also for a server whose removal has not ended: what was to come back does not, and the other
// way round.
func TestTheNewestSetCountsDuringARemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := tardy(newFake("x"), 4*time.Second)
		m := start(t, supervisor.Config{}, map[string]*fake{"f": f})
		one, none := map[string]supervisor.Spec{"a": sdk("f")}, map[string]supervisor.Spec{}
		configured(t, m, one)
		settled(t, m)
		for _, c := range []struct {
			sets  []map[string]supervisor.Spec
			there bool
		}{
			{[]map[string]supervisor.Spec{none, one, none}, false},
			{[]map[string]supervisor.Spec{one}, true},
			{[]map[string]supervisor.Spec{none, one, none, one}, true},
		} {
			inFlight := call(t, m, "a", "x")
			for _, set := range c.sets {
				configured(t, m, set)
			}
			<-inFlight
			time.Sleep(10 * time.Second)
			if there := m.Server("a") != nil; there != c.there {
				t.Errorf("after %d sets: there is %v", len(c.sets), there)
			}
		}
	})
}

// A set of servers without one whose removal has not ended takes back that it is added again.
func TestASetEndsWhatWaitsToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{}, map[string]*fake{"f": tardy(newFake("x"), 4*time.Second)})
		one, none := map[string]supervisor.Spec{"a": sdk("f")}, map[string]supervisor.Spec{}
		set := func(specs map[string]supervisor.Spec) {
			t.Helper()
			if _, err := m.SetServers(t.Context(), specs); err != nil {
				t.Fatal(err)
			}
		}
		set(one)
		settled(t, m)
		inFlight := call(t, m, "a", "x")
		set(none)
		set(one)
		set(none)
		<-inFlight
		time.Sleep(10 * time.Second)
		if m.Server("a") != nil {
			t.Error("it has come back")
		}
	})
}

// A command for a configured server that comes back waits for it: it is the one of the new configuration, and not unknown.
func TestACommandWaitsForAConfiguredServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{}, map[string]*fake{"f": tardy(newFake("x"), 4*time.Second)})
		one, none := map[string]supervisor.Spec{"a": sdk("f")}, map[string]supervisor.Spec{}
		configured(t, m, one)
		settled(t, m)
		inFlight := call(t, m, "a", "x")
		configured(t, m, none)
		configured(t, m, one)
		if err := m.Toggle(t.Context(), "a", false); err != nil {
			t.Errorf("it comes back, and the command for it ended with %v", err)
		}
		<-inFlight
		time.Sleep(10 * time.Second)
		if st, err := m.ServerStatus("a"); err != nil || st.Status != messages.Disabled {
			t.Errorf("it was to be disabled, and is %s: %v", st.Status, err)
		}
	})
}

// SetServers makes the same difference as files do.
func TestSetServersAdjusts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := start(t, supervisor.Config{}, map[string]*fake{"f": newFake("x"), "g": newFake("x")})
		set := func(specs map[string]supervisor.Spec) supervisor.SetServersResult {
			res, err := m.SetServers(t.Context(), specs)
			if err != nil {
				t.Fatal(err)
			}
			settled(t, m)
			return res
		}
		one := supervisor.Spec{Type: messages.SDK, Name: "f"}
		set(map[string]supervisor.Spec{"a": one, "b": one})
		before := status(t, m, "a").Epoch
		changed := one
		changed.CallTimeout = messages.Duration(time.Second)
		res := set(map[string]supervisor.Spec{"a": changed, "b": one})
		if !slices.Equal(res.Adjusted, []string{"a"}) || !slices.Equal(res.Kept, []string{"b"}) || len(res.Added)+len(res.Removed) > 0 {
			t.Errorf("%+v", res)
		}
		if got := status(t, m, "a").Epoch; got != before {
			t.Errorf("epoch %d before, %d after", before, got)
		}
	})
}

// A server that was added at runtime over one that the program has configured falls back to that one when it is removed. The removal
// returned only with its context, because both specs have one scope.
func TestRemovalUncoversWhatTheProgramConfigured(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			below, above := newFake("below"), newFake("above")
			m := start(t, supervisor.Config{}, map[string]*fake{"below": below, "above": above})
			spec := supervisor.Spec{Type: messages.SDK, Name: "below"}
			if lazy {
				spec.Connect = messages.Lazy
			}
			configured(t, m, map[string]supervisor.Spec{"a": spec})
			if err := m.Connect(t.Context(), "a", sdk("above")); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := m.Remove(ctx, "a"); err != nil {
				t.Fatal(err)
			}
			if _, err := m.CallServerTool(ctx, "a", "above", nil); !errors.Is(err, supervisor.ErrNotSent) {
				t.Errorf("a call of the removed one: %v", err)
			}
			settled(t, m)
			if st := status(t, m, "a"); st.Config.Name != "below" {
				t.Errorf("the spec of %q is in force", st.Config.Name)
			}
			if err := m.Remove(ctx, "a"); err == nil {
				t.Error("the configured one was removed")
			}
		})
	}
}
