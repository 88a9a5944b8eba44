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

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// personal is a server that counts its connections, of which each answers its calls with its own number, and with the caller for
// whom it was dialled.
type personal struct {
	fake
	mu    sync.Mutex
	peers map[int64]*fake
}

func (p *personal) serve(ctx context.Context, peer inprocess.Peer) error {
	one := newFake("count", "read")
	one.bare, one.offers = true, `,"resources":{"subscribe":true}`
	n := p.dials.Add(1)
	var calls atomic.Int64
	one.onCall = func(context.Context, string, json.RawMessage) (string, error) {
		return fmt.Sprintf("call %d of connection %d", calls.Add(1), n), nil
	}
	p.mu.Lock()
	if p.peers == nil {
		p.peers = map[int64]*fake{}
	}
	p.peers[n] = one
	p.mu.Unlock()
	p.alive.Add(1)
	defer p.alive.Add(-1)
	return one.serve(ctx, peer)
}

// startPersonal runs one server "box" with an instance for each principal; change may adjust the configuration.
func startPersonal(t *testing.T, change func(*supervisor.Config, *supervisor.Spec)) (*supervisor.Manager, *personal) {
	t.Helper()
	p := &personal{}
	spec := supervisor.Spec{Type: messages.SDK, Share: messages.SharePrincipal}
	cfg := supervisor.Config{InProcess: map[string]func(context.Context, inprocess.Peer) error{"box": p.serve}}
	if change != nil {
		change(&cfg, &spec)
	}
	cfg.Servers = map[string]supervisor.Spec{"box": spec}
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeAll(t, m) })
	if err := m.Ready(t.Context(), "box"); err != nil {
		t.Fatal(err)
	}
	return m, p
}

// callAs calls box for a caller, and returns the text of the answer.
func callAs(t *testing.T, m *supervisor.Manager, caller string) string {
	t.Helper()
	res, err := m.CallServerTool(supervisor.WithCaller(t.Context(), caller), "box", "count", nil)
	if err != nil {
		t.Fatalf("the call of %q ended as %v", caller, err)
	}
	return res.Text()
}

// TestEachPrincipalHasAnInstance: a state that a server keeps by connection is each caller's own; callers without a name share the
// server's own connection. The catalog shows the tools once.
func TestEachPrincipalHasAnInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, nil)
		for _, c := range []struct{ caller, want string }{
			{"anna", "call 1 of connection 2"}, {"ben", "call 1 of connection 3"}, {"anna", "call 2 of connection 2"},
			{"", "call 1 of connection 1"}, {"ben", "call 2 of connection 3"},
		} {
			if got := callAs(t, m, c.caller); got != c.want {
				t.Errorf("%q was answered %q, not %q", c.caller, got, c.want)
			}
		}
		// The qualified name is the same for all.
		res, err := m.CallTool(supervisor.WithCaller(t.Context(), "anna"), "mcp__box__count", nil)
		if err != nil || res.Text() != "call 3 of connection 2" {
			t.Errorf("by the qualified name: %v, %v", res, err)
		}
		if m.Tools().Len() != 2 || !slices.Equal(m.Servers(), []string{"box"}) || !slices.Equal(m.Tools().Servers(), []string{"box"}) {
			t.Errorf("the catalog has %d tools of %v", m.Tools().Len(), m.Servers())
		}
		if err := m.Tools().Check(); err != nil {
			t.Error(err)
		}
		var names []string
		for _, st := range m.Status() {
			names = append(names, st.Name+" of "+st.InstanceOf+" for "+st.Principal)
		}
		if want := []string{"box of  for ", "box@anna of box for anna", "box@ben of box for ben"}; !slices.Equal(names, want) {
			t.Errorf("the status has %q", names)
		}
		if server, principal, ok := m.InstanceOf("box@anna"); !ok || server != "box" || principal != "anna" {
			t.Errorf("box@anna is the instance of %q for %q, %v", server, principal, ok)
		}
		if n := p.alive.Load(); n != 3 {
			t.Errorf("there are %d connections", n)
		}
	})
}

// TestListsMakeNoInstance lists and pings as a caller who makes no call: the server's own connection answers.
func TestListsMakeNoInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, nil)
		ctx := supervisor.WithCaller(t.Context(), "anna")
		if _, err := m.Resources(ctx, "box"); err != nil {
			t.Error(err)
		}
		_, _ = m.Prompts(ctx, "box") // it has none
		if _, err := m.Ping(ctx, "box"); err != nil {
			t.Error(err)
		}
		if n := p.dials.Load(); n != 1 {
			t.Errorf("there were %d connections", n)
		}
	})
}

// TestManyCallsOfOnePrincipalMakeOneInstance, however many come before it is there.
func TestManyCallsOfOnePrincipalMakeOneInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, nil)
		var all sync.WaitGroup
		for i := range 64 {
			all.Go(func() { callAs(t, m, fmt.Sprint("caller-", i%4)) })
		}
		all.Wait()
		if n := p.dials.Load(); n != 5 {
			t.Errorf("4 principals and the server made %d connections", n)
		}
	})
}

// TestInstancesAreBounded: a principal beyond the bound is refused with nothing sent and nothing kept, and gets an instance once
// another has ended.
func TestInstancesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, func(_ *supervisor.Config, s *supervisor.Spec) {
			s.MaxInstances, s.InstanceIdle = 2, messages.Duration(time.Minute)
		})
		callAs(t, m, "anna")
		callAs(t, m, "ben")
		time.Sleep(10 * time.Second)
		for i := range 1000 {
			_, err := m.CallServerTool(supervisor.WithCaller(t.Context(), fmt.Sprint("caller ", i)), "box", "count", nil)
			var e *supervisor.Error
			if !errors.Is(err, supervisor.ErrTooManyInstances) || !errors.Is(err, supervisor.ErrNotSent) || !errors.As(err, &e) ||
				e.Server != "box" || e.Tool != "count" {
				t.Fatalf("the third principal's call ended as %v", err)
			}
			if at, ok := e.MayRetry(); !ok || time.Until(at) > 50*time.Second || time.Until(at) < 40*time.Second {
				t.Fatalf("it may be repeated: %v, in %v", ok, time.Until(at))
			}
		}
		if got := m.Instances("box"); !slices.Equal(got, []string{"box@anna", "box@ben"}) || p.dials.Load() != 3 {
			t.Errorf("the instances are %v, after %d connections", got, p.dials.Load())
		}
		time.Sleep(50 * time.Second)
		synctest.Wait()
		callAs(t, m, "carl")
		if got := m.Instances("box"); !slices.Equal(got, []string{"box@carl"}) {
			t.Errorf("after the idle time the instances are %v", got)
		}
	})
}

// TestAnIdleInstanceEnds, and one that is used does not; the next call makes another. A call that runs longer than the idle time is a
// use, and so is a subscription.
func TestAnIdleInstanceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, nil)
		callAs(t, m, "anna")
		for range 5 {
			time.Sleep(9 * time.Minute)
			callAs(t, m, "anna")
		}
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if got := m.Instances("box"); got != nil || p.alive.Load() != 1 || p.dials.Load() != 2 {
			t.Fatalf("the instances are %v, %d of %d connections live", got, p.alive.Load(), p.dials.Load())
		}
		if _, err := m.ServerStatus("box@anna"); !errors.Is(err, supervisor.ErrUnknownServer) {
			t.Errorf("its status: %v", err)
		}
		if entries := m.Tools().Server("box@anna"); entries != nil || slices.Contains(m.Tools().Remembered(), "box@anna") {
			t.Errorf("the catalog has %v of it", entries)
		}
		if got := callAs(t, m, "anna"); got != "call 1 of connection 3" {
			t.Errorf("then anna was answered %q", got)
		}
		anna := supervisor.WithCaller(t.Context(), "anna")
		if err := m.SubscribeResource(anna, "box", "x:///1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got := m.Instances("box"); !slices.Equal(got, []string{"box@anna"}) {
			t.Errorf("with a subscription the instances are %v", got)
		}
		if err := m.UnsubscribeResource(anna, "box", "x:///1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Minute)
		if got := m.Instances("box"); got != nil {
			t.Errorf("without it they are %v", got)
		}
	})
}

// TestAnInstanceIsIdleFromTheEndOfItsLastCall: and not from its beginning.
func TestAnInstanceIsIdleFromTheEndOfItsLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, func(_ *supervisor.Config, spec *supervisor.Spec) {
			spec.CallTimeout = messages.Duration(9 * time.Minute)
		})
		callAs(t, m, "anna")
		p.mu.Lock()
		own := p.peers[p.dials.Load()]
		p.mu.Unlock()
		own.set(func(f *fake) {
			f.onCall = func(context.Context, string, json.RawMessage) (string, error) {
				time.Sleep(8 * time.Minute)
				return "late", nil
			}
		})
		callAs(t, m, "anna")
		time.Sleep(9 * time.Minute)
		if got := m.Instances("box"); !slices.Equal(got, []string{"box@anna"}) {
			t.Errorf("9 minutes after the end of a call the instances are %v", got)
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if got := m.Instances("box"); got != nil {
			t.Errorf("10 minutes after it they are %v", got)
		}
	})
}

// TestWithTheServerItsInstancesEnd: when it is disabled, removed, or gets a spec for another connection; what their connections do
// not depend on is applied to them.
func TestWithTheServerItsInstancesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, nil)
		spec := supervisor.Spec{Type: messages.SDK, Name: "box", Share: messages.SharePrincipal}
		use := func(want int64) {
			t.Helper()
			callAs(t, m, "anna")
			callAs(t, m, "ben")
			if n := p.alive.Load(); n != want {
				t.Fatalf("%d connections live, not %d", n, want)
			}
		}
		use(3)
		if err := m.Toggle(t.Context(), "box", false); err != nil {
			t.Fatal(err)
		}
		_, err := m.CallServerTool(supervisor.WithCaller(t.Context(), "anna"), "box", "count", nil)
		if !errors.Is(err, supervisor.ErrDisabled) || !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("while it is disabled: %v", err)
		}
		synctest.Wait()
		if p.alive.Load() != 1 || m.Instances("box") != nil {
			t.Errorf("while it is disabled %d connections live", p.alive.Load())
		}
		if err := m.Toggle(t.Context(), "box", true); err != nil {
			t.Fatal(err)
		}
		use(3)
		// Another bound is no other connection.
		dials := p.dials.Load()
		spec.DeniedTools = []string{"read"}
		if _, err := m.Configure(t.Context(), map[string]supervisor.Spec{"box": spec}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		spec.Name = "box"
		if got := m.ToolsFor(supervisor.WithCaller(t.Context(), "anna")); len(got) != 1 {
			t.Errorf("anna is offered %d tools", len(got))
		}
		// Name was empty before, which is another in-process server as far as a spec can tell.
		if n := p.dials.Load(); n != dials+1 {
			t.Logf("the change cost %d connections", n-dials)
		}
		use(3)
		dials = p.dials.Load()
		spec.DeniedTools = nil
		if _, err := m.Configure(t.Context(), map[string]supervisor.Spec{"box": spec}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := m.ToolsFor(supervisor.WithCaller(t.Context(), "anna")); len(got) != 2 || p.dials.Load() != dials {
			t.Errorf("anna is offered %d tools, after %d new connections", len(got), p.dials.Load()-dials)
		}
		use(3)
		// A server that all share has no instances.
		spec.Share = messages.ShareAll
		if _, err := m.Configure(t.Context(), map[string]supervisor.Spec{"box": spec}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		use(1)
		spec.Share = messages.SharePrincipal
		if _, err := m.Configure(t.Context(), map[string]supervisor.Spec{"box": spec}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		use(3)
		if _, err := m.Configure(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if p.alive.Load() != 0 || m.Status() == nil && len(m.Status()) != 0 {
			t.Errorf("after the removal %d connections live", p.alive.Load())
		}
		_, err = m.CallServerTool(supervisor.WithCaller(t.Context(), "anna"), "box", "count", nil)
		if !errors.Is(err, supervisor.ErrUnknownServer) {
			t.Errorf("after the removal: %v", err)
		}
	})
}

// TestAnInstanceFailsAlone: its crash, its restarts and its errors are its own.
func TestAnInstanceFailsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, nil)
		callAs(t, m, "anna")
		callAs(t, m, "ben")
		p.mu.Lock()
		p.peers[2].kill()
		p.mu.Unlock()
		synctest.Wait()
		_, err := m.CallServerTool(supervisor.WithCaller(t.Context(), "anna"), "box", "count", nil)
		var e *supervisor.Error
		if !errors.Is(err, supervisor.ErrNotConnected) || !errors.As(err, &e) || e.Server != "box@anna" {
			t.Errorf("anna's call ended as %v", err)
		}
		if at, ok := e.MayRetry(); !ok || time.Until(at) > time.Minute {
			t.Errorf("it may be repeated: %v, in %v", ok, time.Until(at))
		}
		if got := callAs(t, m, "ben"); got != "call 2 of connection 3" {
			t.Errorf("ben was answered %q", got)
		}
		if err := m.Ready(t.Context(), "box@anna"); err != nil {
			t.Fatal(err)
		}
		if got := callAs(t, m, "anna"); got != "call 1 of connection 4" {
			t.Errorf("anna was answered %q after the restart", got)
		}
		if err := m.Reconnect(t.Context(), "box@ben"); err != nil {
			t.Fatal(err)
		}
		if got := callAs(t, m, "ben"); got != "call 1 of connection 5" {
			t.Errorf("ben was answered %q after a reconnect", got)
		}
		// An instance can be removed, and is made again; it cannot be disabled.
		if err := m.Toggle(t.Context(), "box@ben", false); !errors.Is(err, supervisor.ErrInvalid) {
			t.Errorf("disabling an instance: %v", err)
		}
		if err := m.Remove(t.Context(), "box@ben"); err != nil {
			t.Fatal(err)
		}
		if got := callAs(t, m, "ben"); got != "call 1 of connection 6" {
			t.Errorf("ben was answered %q after a removal", got)
		}
	})
}

// TestNobodyUsesAnothersInstance: the name of an instance is no way to it for another caller.
func TestNobodyUsesAnothersInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := startPersonal(t, nil)
		callAs(t, m, "anna")
		for _, caller := range []string{"ben", ""} {
			ctx := supervisor.WithCaller(t.Context(), caller)
			if _, err := m.CallServerTool(ctx, "box@anna", "count", nil); !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) {
				t.Errorf("a call of %q ended as %v", caller, err)
			}
			if _, err := m.ReadServerResource(ctx, "box@anna", "x:///1"); !errors.Is(err, supervisor.ErrDenied) {
				t.Errorf("a read of %q ended as %v", caller, err)
			}
			if err := m.SubscribeResource(ctx, "box@anna", "x:///1"); !errors.Is(err, supervisor.ErrDenied) {
				t.Errorf("a subscription of %q ended as %v", caller, err)
			}
			if _, err := m.Prompts(ctx, "box@anna"); !errors.Is(err, supervisor.ErrDenied) {
				t.Errorf("a list of %q ended as %v", caller, err)
			}
		}
		res, err := m.CallServerTool(supervisor.WithCaller(t.Context(), "anna"), "box@anna", "count", nil)
		if err != nil || res.Text() != "call 2 of connection 2" {
			t.Errorf("anna's own: %v, %v", res, err)
		}
	})
}

// TestNobodyUsesAnothersInstanceThatIsAway: nor is the name a way while the instance is not connected yet and calls wait for it.
func TestNobodyUsesAnothersInstanceThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m, _ := startPersonal(t, func(c *supervisor.Config, _ *supervisor.Spec) {
			serve := c.InProcess["box"]
			first := true
			c.InProcess["box"] = func(ctx context.Context, peer inprocess.Peer) error {
				if !first {
					<-release
				}
				first = false
				return serve(ctx, peer)
			}
			c.CallWait = time.Minute
		})
		var all sync.WaitGroup
		all.Go(func() { callAs(t, m, "anna") })
		synctest.Wait()
		for _, caller := range []string{"ben", ""} {
			all.Go(func() {
				_, err := m.CallServerTool(supervisor.WithCaller(t.Context(), caller), "box@anna", "count", nil)
				if !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) {
					t.Errorf("a call of %q ended as %v", caller, err)
				}
			})
		}
		synctest.Wait()
		close(release)
		all.Wait()
	})
}

// TestRulesSeeTheServerAndNotTheInstance, and what they deny starts none.
func TestRulesSeeTheServerAndNotTheInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var allowed []string
		m, p := startPersonal(t, func(c *supervisor.Config, _ *supervisor.Spec) {
			c.Access = access.Rules{Own: access.Set{Rules: []access.Rule{access.MustParse(access.Deny, "mcp__box__read")}}}
			c.Allow = func(ctx context.Context, tool *supervisor.Tool, _ json.RawMessage) error {
				allowed = append(allowed, supervisor.CallerOf(ctx)+" "+tool.Server+" "+tool.Name)
				if supervisor.CallerOf(ctx) == "mallory" {
					return errors.New("not for you")
				}
				return nil
			}
		})
		anna := supervisor.WithCaller(t.Context(), "anna")
		for _, call := range []func() error{
			func() error { _, err := m.CallServerTool(anna, "box", "read", nil); return err },
			func() error { _, err := m.CallTool(anna, "mcp__box__read", nil); return err },
		} {
			if err := call(); !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) || p.dials.Load() != 1 {
				t.Errorf("a denied call ended as %v, after %d connections", err, p.dials.Load())
			}
		}
		callAs(t, m, "anna")
		if _, err := m.CallServerTool(anna, "box", "read", nil); !errors.Is(err, supervisor.ErrDenied) {
			t.Errorf("a denied call of an instance ended as %v", err)
		}
		// The first time is before the instance is made.
		if !slices.Equal(allowed, []string{"anna box count", "anna box count"}) {
			t.Errorf("Allow was asked about %q", allowed)
		}
		if got := m.ToolsFor(anna); len(got) != 1 || got[0].Name != "mcp__box__count" || got[0].Tool.Server != "box" {
			t.Errorf("anna is offered %v", got)
		}
		// Who may call nothing takes no place among the instances.
		dials := p.dials.Load()
		_, err := m.CallServerTool(supervisor.WithCaller(t.Context(), "mallory"), "box", "count", nil)
		var e *supervisor.Error
		if !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) || !errors.As(err, &e) || e.Server != "box" || e.Tool != "count" {
			t.Errorf("the call of one who may call nothing ended as %v", err)
		}
		if got := m.Instances("box"); !slices.Equal(got, []string{"box@anna"}) || p.dials.Load() != dials {
			t.Errorf("then the instances are %v", got)
		}
		if got := m.ToolsFor(supervisor.WithCaller(t.Context(), "mallory")); len(got) != 0 {
			t.Errorf("a caller who may call nothing is offered %v", got)
		}
	})
}

// TestToolsForACallerAreThoseOfItsInstance: a server may list other tools to another principal, and the change of one instance's list
// is seen in a new generation.
func TestToolsForACallerAreThoseOfItsInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, nil)
		callAs(t, m, "anna")
		before := m.Tools().Generation()
		p.mu.Lock()
		hers := p.peers[2]
		p.mu.Unlock()
		hers.setTools("count", "write", "read")
		time.Sleep(5 * time.Second)
		names := func(caller string) (all []string) {
			for _, e := range m.ToolsFor(supervisor.WithCaller(t.Context(), caller)) {
				all = append(all, e.Tool.Name)
			}
			return all
		}
		if got := names("anna"); !slices.Equal(got, []string{"count", "read", "write"}) || m.Tools().Generation() == before {
			t.Errorf("anna is offered %v", got)
		}
		for _, caller := range []string{"ben", ""} {
			if got := names(caller); !slices.Equal(got, []string{"count", "read"}) {
				t.Errorf("%q is offered %v", caller, got)
			}
		}
		if res, err := m.CallTool(supervisor.WithCaller(t.Context(), "anna"), "mcp__box__write", nil); err != nil {
			t.Errorf("her own tool: %v, %v", res, err)
		}
		if err := m.Tools().Check(); err != nil {
			t.Error(err)
		}
	})
}

// TestAServerWithTheNameOfAnInstanceWins: the instance ends, and its principal's calls say why they cannot have another.
func TestAServerWithTheNameOfAnInstanceWins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, nil)
		callAs(t, m, "anna")
		if err := m.Connect(t.Context(), "box@anna", supervisor.Spec{Type: messages.SDK, Name: "box"}); err != nil {
			t.Fatal(err)
		}
		if got := p.alive.Load(); got != 2 {
			t.Errorf("%d connections live", got)
		}
		_, err := m.CallServerTool(supervisor.WithCaller(t.Context(), "anna"), "box", "count", nil)
		if !errors.Is(err, supervisor.ErrNotSent) || !errors.Is(err, supervisor.ErrInvalid) || !strings.Contains(err.Error(), "box@anna") {
			t.Errorf("anna's call ended as %v", err)
		}
		if _, err := m.CallServerTool(t.Context(), "box@anna", "count", nil); err != nil {
			t.Errorf("the server's own call ended as %v", err)
		}
		if _, _, ok := m.InstanceOf("box@anna"); ok {
			t.Error("a server counts as an instance")
		}
	})
}

// TestMessagesCarryTheirCaller: what an actor asks for by message reaches the instance of the caller that the message names, as the
// functions of the manager do.
func TestMessagesCarryTheirCaller(t *testing.T) {
	m, p := startPersonal(t, func(c *supervisor.Config, _ *supervisor.Spec) {
		c.Allow = func(ctx context.Context, tool *supervisor.Tool, _ json.RawMessage) error {
			if tool.Name == "read" && supervisor.CallerOf(ctx) == "ben" {
				return errors.New("not for you")
			}
			return nil
		}
	})
	a := correspond(t, m)
	for _, ask := range []func(caller string) proto.Message{
		func(caller string) proto.Message {
			return &messages.CallTool{Server: "box", Tool: "count", Caller: caller}
		},
		func(caller string) proto.Message {
			return &messages.SubscribeResource{Server: "box", Uri: "x:///1", Caller: caller}
		},
		func(caller string) proto.Message {
			return &messages.ReadResource{Server: "box", Uri: "x:///1", Caller: caller}
		},
		func(caller string) proto.Message {
			return &messages.GetPrompt{Server: "box", Prompt: "p", Caller: caller}
		},
		func(caller string) proto.Message {
			return &messages.Complete{Server: "box", Prompt: "p", Argument: "a", Caller: caller}
		},
	} {
		before := p.dials.Load()
		a.ask(ask("")) // the server's own connection is there
		if p.dials.Load() != before {
			t.Errorf("%T without a caller opened a connection", ask(""))
		}
		a.ask(ask("anna"))
		if got := m.Instances("box"); !slices.Equal(got, []string{"box@anna"}) || p.dials.Load() != before+1 {
			t.Errorf("after %T the instances are %v", ask("anna"), got)
		}
		// An instance is no other caller's.
		if d := a.ask(&messages.UnsubscribeResource{Server: "box@anna", Uri: "x:///1", Caller: "ben"}).(*messages.Done); !errors.Is(d.GetFailure().ToError(),
			supervisor.ErrDenied) {
			t.Errorf("ben's message to anna's instance ended as %v", d)
		}
		if err := m.Remove(t.Context(), "box@anna"); err != nil {
			t.Fatal(err)
		}
	}
	// Lists start no instance, and show those of the one that is there.
	a.ask(&messages.CallTool{Server: "box", Tool: "count", Caller: "anna"})
	p.mu.Lock()
	hers := p.peers[p.dials.Load()]
	p.mu.Unlock()
	hers.setTools("count", "write", "read")
	wait, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(m.ToolsFor(supervisor.WithCaller(wait, "anna"))) != 3 && wait.Err() == nil {
		time.Sleep(5 * time.Millisecond)
	}
	for caller, want := range map[string]string{"anna": "count read write", "ben": "count", "": "count read"} {
		for _, servers := range [][]string{nil, {"box"}} {
			r := a.ask(&messages.ListTools{Caller: caller, Servers: servers}).(*messages.ToolsReply)
			var names []string
			for _, tool := range r.GetTools() {
				names = append(names, tool.GetName())
			}
			if got := strings.Join(names, " "); got != want || r.GetFailure() != nil || r.GetGeneration() != m.Tools().Generation() {
				t.Errorf("%q is told of the tools %s, with %v", caller, got, r.GetFailure())
			}
		}
	}
	for _, list := range []proto.Message{
		&messages.ListResources{Servers: []string{"box@anna"}, Caller: "ben"}, &messages.ListPrompts{Servers: []string{"box@anna"}, Caller: "ben"},
		&messages.ListResourceTemplates{Servers: []string{"box@anna"}, Caller: "ben"},
	} {
		failures := a.ask(list).(interface{ GetFailures() []*messages.Failure }).GetFailures()
		if len(failures) != 1 || !errors.Is(failures[0].ToError(), supervisor.ErrDenied) {
			t.Errorf("%T by another caller failed with %v", list, failures)
		}
	}
}

// TestACommandForAServerIsOneForItsInstances: a person who reconnects a server wants its callers served anew as well, and one who disables it
// wants none of its processes.
func TestACommandForAServerIsOneForItsInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, p := startPersonal(t, nil)
		callAs(t, m, "anna")
		callAs(t, m, "ben")
		if err := m.Reconnect(t.Context(), "box"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for _, caller := range []string{"anna", "ben"} {
			if got := callAs(t, m, caller); !strings.HasPrefix(got, "call 1 of connection ") {
				t.Errorf("%s is served by the connection of before: %s", caller, got)
			}
		}
		if n := p.alive.Load(); n != 3 {
			t.Errorf("%d connections", n)
		}
		if err := m.Toggle(t.Context(), "box", false); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := len(m.Instances("box")); n != 0 {
			t.Errorf("%d instances of a server that is disabled", n)
		}
	})
}
