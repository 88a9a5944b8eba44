package gateway_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

const idle = 20 * time.Second

// lazySpec is the spec of a server that rests after idle.
func lazySpec() supervisor.Spec {
	return supervisor.Spec{Type: messages.SDK, Connect: messages.Lazy, IdleTimeout: messages.Duration(idle)}
}

// startLazy serves an offerServer alpha that rests after idle, and an eager one beta. dials counts the connections of alpha.
func startLazy(t *testing.T, views map[string]config.View, interceptors ...supervisor.Interceptor) (e *endpoint, dials *atomic.Int32) {
	dials = &atomic.Int32{}
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"beta": {Type: messages.SDK}}, Interceptors: interceptors,
		InProcess: map[string]func(context.Context, inprocess.Peer) error{
			"alpha": func(ctx context.Context, peer inprocess.Peer) error {
				dials.Add(1)
				return offerServer("alpha").serveConnection(ctx, peer)
			},
			"beta": offerServer("beta").serveConnection, "gamma": offerServer("gamma").serveConnection}}
	e, _ = startEndpoint(t, cfg, views, map[string]serve.Principal{"a": {Name: "a"}, "b": {Name: "b"}})
	if err := e.m.Connect(t.Context(), "alpha", lazySpec()); err != nil { // at run time: SetServers removes it
		t.Fatal(err)
	}
	return e, dials
}

// awaitRest waits until alpha rests.
func (e *endpoint) awaitRest() {
	e.t.Helper()
	time.Sleep(idle + 5*time.Second)
	if s, err := e.m.ServerStatus("alpha"); err != nil || s.Step != messages.Idle {
		e.t.Fatalf("alpha is %s, %s: %v", s.Status, s.Step, err)
	}
}

// offers returns the answers to all lists beside the tools.
func (a *agent) offers() string {
	return a.ask("prompts/list", "{}") + a.ask("resources/list", "{}") + a.ask("resources/templates/list", "{}")
}

// What is listed of alpha, and what of beta.
const offersOfAlpha, offersOfBeta = "the prompt of alpha, the list of alpha, the template of alpha", "the prompt of beta, the list of beta, the template of beta"

func parts(all string) []string { return strings.Split(all, ", ") }

func lacks(t *testing.T, what, answer string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(answer, part) {
			t.Errorf("%s: there is %s in %s", what, part, answer)
		}
	}
}

// The prompts, resources and templates of a lazy server stay in the lists while it rests, also for an agent that comes no sooner than then. No
// list wakes it, and whatever an agent wants of it does. They left the lists once, though the tools stayed.
func TestOffersStayWhileTheirServerRests(t *testing.T) {
	for what, use := range map[string]struct{ method, params, answer string }{
		"a prompt":     {"prompts/get", `{"name":"alpha__greet"}`, "the greeting of alpha"},
		"a resource":   {"resources/read", `{"uri":"alpha://x"}`, "the secret of alpha"},
		"a template":   {"resources/read", `{"uri":"alpha://t/1"}`, "the secret of alpha"},
		"a completion": {"completion/complete", `{"ref":{"type":"ref/prompt","name":"alpha__greet"},"argument":{"name":"x","value":""}}`, "the completion of alpha"},
		"a watch":      {"resources/subscribe", `{"uri":"alpha://x"}`, `"result":{}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, dials := startLazy(t, nil)
			e.awaitRest()
			late := e.agent("b", "/mcp", "{}")
			contains(t, what, late.offers(), append(parts(offersOfAlpha), parts(offersOfBeta)...)...)
			if n := dials.Load(); n != 1 {
				t.Errorf("%s: the lists connected the server %d times", what, n)
			}
			contains(t, what, late.ask(use.method, use.params), use.answer)
			if n := dials.Load(); n != 2 {
				t.Errorf("%s: after its use the server has been connected %d times", what, n)
			}
			contains(t, what+", awake", late.offers(), parts(offersOfAlpha)...)
		})
	}
}

// Rest and return are no change of the lists, and agents are notified of none.
func TestRestIsNoChangeOfOffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := startLazy(t, nil)
		a := e.agent("a", "/mcp", "{}")
		a.offers()
		heard := a.readStream()
		e.awaitRest()
		contains(t, "the call that wakes it", a.ask("tools/call", `{"name":"alpha__read"}`), "it is read of alpha")
		e.awaitRest()
		lacks(t, "the notices", heard(), "prompts/list_changed", "resources/list_changed")
	})
}

// The gateway forgets the lists of a server with its spec and with its removal, and hides them while it is disabled.
func TestRememberedOffersGoWithTheirServer(t *testing.T) {
	only := func(ctx context.Context, m *supervisor.Manager, specs map[string]supervisor.Spec) error {
		specs["beta"] = supervisor.Spec{Type: messages.SDK}
		_, err := m.SetServers(ctx, specs)
		return err
	}
	other := lazySpec()
	other.Name = "gamma"
	for what, act := range map[string]func(context.Context, *supervisor.Manager) error{
		"disabled": func(ctx context.Context, m *supervisor.Manager) error { return m.Toggle(ctx, "alpha", false) },
		"removed": func(ctx context.Context, m *supervisor.Manager) error {
			return only(ctx, m, map[string]supervisor.Spec{})
		},
		"replaced": func(ctx context.Context, m *supervisor.Manager) error {
			return only(ctx, m, map[string]supervisor.Spec{"alpha": other})
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, _ := startLazy(t, nil)
			a := e.agent("a", "/mcp", "{}")
			e.awaitRest()
			contains(t, what+", before", a.offers(), parts(offersOfAlpha)...)
			if err := act(t.Context(), e.m); err != nil {
				t.Fatal(what, err)
			}
			time.Sleep(time.Second)
			offers := a.offers()
			lacks(t, what, offers, parts(offersOfAlpha)...)
			contains(t, what, offers, parts(offersOfBeta)...)
		})
	}
}

// A view that hides a server, and a program that refuses its lists to a principal, hide its remembered lists, too.
func TestRememberedOffersAreJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := startLazy(t, map[string]config.View{"narrow": {Servers: []string{"beta"}}},
			func(ctx context.Context, r *supervisor.Request, next supervisor.Invoker) (*supervisor.Response, error) {
				if r.Server == "alpha" && messages.CallerOf(ctx) == "b" {
					return nil, messages.ErrDenied
				}
				return next(ctx, r)
			})
		e.awaitRest()
		contains(t, "a", e.agent("a", "/mcp", "{}").offers(), parts(offersOfAlpha)...)
		lacks(t, "the narrow view", e.agent("a", "/mcp/v/narrow", "{}").offers(), parts(offersOfAlpha)...)
		lacks(t, "b", e.agent("b", "/mcp", "{}").offers(), parts(offersOfAlpha)...)
	})
}

// A lazy server does not rest while an agent watches a resource of it, which would hear of no update: it rests when the watch has ended.
func TestAWatchedServerDoesNotRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, dials := startLazy(t, nil)
		e.awaitRest()
		a := e.agent("a", "/mcp", "{}")
		contains(t, "the watch", a.ask("resources/subscribe", `{"uri":"alpha://x"}`), `"result":{}`)
		time.Sleep(5 * idle)
		if s, err := e.m.ServerStatus("alpha"); err != nil || s.Status != messages.Connected || dials.Load() != 2 {
			t.Errorf("it is %s after %d connections: %v", s.Status, dials.Load(), err)
		}
		contains(t, "its end", a.ask("resources/unsubscribe", `{"uri":"alpha://x"}`), `"result":{}`)
		e.awaitRest()
	})
}

// A lazy server rests in its time however often agents list: a list is no use of it.
func TestAListIsNoUseOfALazyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, dials := startLazy(t, nil)
		a := e.agent("a", "/mcp", "{}")
		for range 10 {
			contains(t, "the lists", a.offers(), parts(offersOfAlpha)...)
			time.Sleep(idle / 4)
		}
		if s, err := e.m.ServerStatus("alpha"); err != nil || s.Step != messages.Idle || dials.Load() != 1 {
			t.Errorf("it is %s, %s, after %d connections: %v", s.Status, s.Step, dials.Load(), err)
		}
	})
}
