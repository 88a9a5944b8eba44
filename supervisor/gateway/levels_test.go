package gateway_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A loggingServer notes the levels that it is asked for. Its tool "work" takes a second, and says so at its beginning in a message of the
// least severe level, if it was asked for that.
type loggingServer struct {
	// busy is how long a request for a level waits for its answer.
	busy time.Duration

	mu    sync.Mutex
	asked []string
	end   context.CancelFunc
	fine  bool
}

func (s *loggingServer) serveConnection(ctx context.Context, peer inprocess.Peer) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s.mu.Lock()
	s.end = end
	s.mu.Unlock()
	return serveRequests(ctx, peer, func(r heardRequest) string {
		switch r.method {
		case "initialize":
			s.mu.Lock()
			s.fine = false
			s.mu.Unlock()
			return `{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{}},"serverInfo":{"name":"n","version":"1"}}`
		case "tools/list":
			return `{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			go s.work(ctx, peer, r.id)
			return answeredLater
		case "logging/setLevel":
			s.mu.Lock()
			s.asked = append(s.asked, r.text("level"))
			s.fine = r.text("level") == "debug"
			s.mu.Unlock()
			if s.busy > 0 {
				go s.answerLate(ctx, peer, r.id)
				return answeredLater
			}
		}
		return ""
	})
}

// answerLate answers a request for a level when the server is not busy any more.
func (s *loggingServer) answerLate(ctx context.Context, peer inprocess.Peer, id string) {
	time.Sleep(s.busy)
	_ = writeResult(ctx, peer, id, "{}")
}

// work performs a call. What cannot be written ends with the connection.
func (s *loggingServer) work(ctx context.Context, peer inprocess.Peer, id string) {
	s.mu.Lock()
	fine := s.fine
	s.mu.Unlock()
	if fine {
		_ = peer.Write(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"debug","data":"at work"}}`))
	}
	time.Sleep(time.Second)
	_ = writeResult(ctx, peer, id, `{"content":[{"type":"text","text":"done"}]}`)
}

// askedSince returns what the server was asked for since the last time, when everything that was under way has ended.
func (s *loggingServer) askedSince() []string {
	time.Sleep(time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

func (s *loggingServer) endConnection() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

func startLogging(t *testing.T, spec supervisor.Spec, views map[string]config.View) (*endpoint, *gateway.Gateway, *loggingServer) {
	s := &loggingServer{}
	spec.Type = messages.SDK
	cfg := supervisor.Config{Servers: map[string]supervisor.Spec{"one": spec},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{"one": s.serveConnection}}
	e, g := startEndpoint(t, cfg, views, map[string]serve.Principal{"a": {Name: "a"}, "b": {Name: "b"}, "blind": {Name: "blind", View: "other"}})
	return e, g, s
}

func (a *agent) setLevel(level string) {
	a.t.Helper()
	contains(a.t, "setLevel", a.ask("logging/setLevel", `{"level":"`+level+`"}`), `"result":{}`)
}

// A server is asked for the finest level that an agent wants who sees it, once: also on its next connection, and for less when those leave
// that wanted more.
func TestTheLevelIsTheFinestThatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startLogging(t, supervisor.Spec{}, map[string]config.View{"other": {Servers: []string{"two"}}})
		want := func(what string, levels ...string) {
			t.Helper()
			if asked := s.askedSince(); !slices.Equal(asked, levels) {
				t.Errorf("%s: the server was asked for %v, not %v", what, asked, levels)
			}
		}
		first, second := e.agent("a", "/mcp", "{}"), e.agent("a", "/mcp", "{}")
		want("nobody has set a level")
		first.setLevel("warning")
		want("the first level", "warning")
		second.setLevel("debug")
		want("a finer one", "debug")
		first.setLevel("error")
		want("a coarser one of another agent")
		e.agent("blind", "/mcp", "{}").setLevel("debug")
		want("one of an agent that does not see the server")
		s.endConnection()
		time.Sleep(10 * time.Second)
		want("the next connection", "debug")
		second.leave()
		want("the agent leaves that wanted the finest", "error")
		second = e.agent("a", "/mcp", "{}")
		second.setLevel("error")
		second.leave()
		want("an agent that wanted the same comes and leaves")
		first.leave()
		want("the last one leaves", "info")
		s.endConnection()
		time.Sleep(10 * time.Second)
		want("the connection after the last one")
	})
}

// A server is asked for the level of an agent that sees it since the views were replaced, and for that of the others when it does so no more.
func TestAServerThatIsShownLaterIsAskedForTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hidden, shown := map[string]config.View{"other": {Servers: []string{"two"}}}, map[string]config.View{"other": {Servers: []string{"one"}}}
		e, g, s := startLogging(t, supervisor.Spec{}, hidden)
		e.agent("blind", "/mcp", "{}").setLevel("debug")
		for _, step := range []struct {
			views map[string]config.View
			want  []string
		}{{hidden, nil}, {shown, []string{"debug"}}, {shown, nil}, {hidden, []string{"info"}}} {
			g.SetViews(step.views)
			synctest.Wait()
			if asked := s.askedSince(); !slices.Equal(asked, step.want) {
				t.Errorf("the server was asked for %v, not %v", asked, step.want)
			}
		}
	})
}

// What the configuration wants is not taken from the person by an agent that wants less, and is put back behind one that wants more.
func TestTheLevelOfTheConfiguration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startLogging(t, supervisor.Spec{LogLevel: "notice"}, nil)
		s.askedSince() // the session itself has asked
		a := e.agent("a", "/mcp", "{}")
		a.setLevel("error")
		a.setLevel("debug")
		a.setLevel("critical")
		a.setLevel("info")
		a.leave()
		if asked := s.askedSince(); !slices.Equal(asked, []string{"debug", "notice", "info", "notice"}) {
			t.Errorf("the server was asked for %v", asked)
		}
	})
}

// work has an agent of the modern era call the tool with a level, and returns everything that it hears.
func (e *endpoint) work(token, level string) string {
	return e.post(e.t.Context(), "/mcp", map[string]string{"Authorization": "Bearer " + token, "Mcp-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": "one__work"}, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one__work","_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},`+
		`"io.modelcontextprotocol/logLevel":"`+level+`"}}}`).Body.String()
}

// A server of the legacy era, which knows one level for its connection, is asked for the level of a request of the modern era before the
// request, and some time after the last one for what the others want. A request that wants no more than those that are under way asks for nothing.
func TestARequestOfTheModernEraRaisesTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startLogging(t, supervisor.Spec{}, map[string]config.View{"other": {Servers: []string{"two"}}})
		want := func(what string, levels ...string) {
			t.Helper()
			if asked := s.askedSince(); !slices.Equal(asked, levels) {
				t.Errorf("%s: the server was asked for %v, not %v", what, asked, levels)
			}
		}
		e.work("a", "")
		e.work("a", "loud")
		want("no level, and none that is one")
		e.work("a", "debug")
		want("the first request", "debug")
		time.Sleep(2 * time.Second)
		if heard := e.work("a", "debug"); !strings.Contains(heard, "at work") || !strings.Contains(heard, "done") {
			t.Errorf("the agent heard %s", heard)
		}
		e.work("a", "error")
		want("further ones")
		time.Sleep(10 * time.Second)
		want("some time after the last one", "info")
		e.agent("a", "/mcp", "{}").setLevel("warning")
		want("a session", "warning")
		e.work("a", "error")
		want("a request that wants less than a session")
		var both sync.WaitGroup
		both.Go(func() { e.work("a", "notice") })
		want("a request that wants more", "notice")
		both.Go(func() { e.work("a", "debug") })
		want("another one that wants still more", "debug")
		both.Wait()
		s.endConnection()
		time.Sleep(10 * time.Second)
		want("the next connection", "debug", "warning")
		both.Go(func() { e.work("a", "debug") })
		want("a request on it", "debug")
		both.Wait()
		time.Sleep(10 * time.Second)
		want("after it what the session wants", "warning")
		both.Go(func() { e.work("blind", "debug") })
		want("a request of an agent that does not see the server")
		both.Wait()
	})
}

// Requests of two principals that end together leave a server what they wanted for the same time. It is then asked once for the level that is left, and not
// for what the other one wanted in between. Which of the two timers runs first is drawn anew each time.
func TestLevelsThatEndTogetherAreTakenBackTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startLogging(t, supervisor.Spec{}, nil)
		for range 10 {
			var both sync.WaitGroup
			for token, level := range map[string]string{"a": "notice", "b": "debug"} {
				both.Go(func() { e.work(token, level) })
			}
			both.Wait()
			s.askedSince()
			time.Sleep(10 * time.Second)
			if asked := s.askedSince(); !slices.Equal(asked, []string{"info"}) {
				t.Fatalf("after both the server was asked for %v", asked)
			}
		}
	})
}

// A server that answers late delays no request for its level: neither the one that raises it, nor another one that comes before the answer.
func TestABusyServerDelaysNoRequestForItsLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startLogging(t, supervisor.Spec{}, nil)
		s.busy = 3 * time.Second
		begun := time.Now()
		var both sync.WaitGroup
		for _, level := range []string{"notice", "debug"} {
			both.Go(func() { e.work("a", level) })
			time.Sleep(time.Millisecond)
		}
		both.Wait()
		if took := time.Since(begun); took != time.Second+time.Millisecond {
			t.Errorf("they took %s", took)
		}
		time.Sleep(10 * time.Second)
		if asked := s.askedSince(); !slices.Equal(asked, []string{"notice", "debug", "info"}) {
			t.Errorf("the server was asked for %v", asked)
		}
	})
}

// An agent that goes in the instant in which its wish for a level gets its turn leaves no level noted that the server was never asked for: the next agent
// that wanted it was told yes, and got no message (days, seed 30340116).
func TestALevelOfOneWhoHasGoneIsAskedForByTheNext(t *testing.T) {
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			_, g, s := startLogging(t, supervisor.Spec{}, nil)
			s.busy = time.Second
			var all sync.WaitGroup
			set := func(ctx context.Context, level string) {
				session := &serve.Session{Principal: serve.Principal{Name: "a"}}
				if _, e := g.Describe(session); e != nil {
					t.Fatal(e)
				}
				all.Go(func() {
					_, _ = g.Handle(ctx, &serve.Request{Session: session, Method: "logging/setLevel", Params: []byte(`{"level":"` + level + `"}`)})
				})
				synctest.Wait()
			}
			gone, cancel := context.WithTimeout(t.Context(), s.busy)
			defer cancel()
			set(t.Context(), "error")
			set(gone, "warning")
			set(t.Context(), "notice")
			all.Wait()
			time.Sleep(10 * time.Second)
			if asked := s.askedSince(); len(asked) == 0 || asked[len(asked)-1] != "notice" {
				t.Errorf("notice is wanted, and the server was asked for %v", asked)
			}
		})
	}
}

// A lazy server rests when it was not called for its time, however often the level of its connection changes; and no level wakes it.
func TestALevelIsNoUseOfALazyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _, s := startLogging(t, supervisor.Spec{Connect: messages.Lazy, IdleTimeout: messages.Duration(20 * time.Second)}, nil)
		e.work("a", "debug") // it takes a second, and what it wants is kept for five
		agent := e.agent("a", "/mcp", "{}")
		time.Sleep(10 * time.Second)
		agent.setLevel("warning")
		if asked := s.askedSince(); !slices.Equal(asked, []string{"debug", "info", "warning"}) {
			t.Errorf("the server was asked for %v", asked)
		}
		time.Sleep(10 * time.Second) // 20 s after the end of the call, and 13 to 15 s after the levels
		if st, err := e.m.ServerStatus("one"); err != nil || st.Step != messages.Idle {
			t.Errorf("it is %s, %s: %v", st.Status, st.Step, err)
		}
		agent.setLevel("debug")
		if asked := s.askedSince(); len(asked) > 0 {
			t.Errorf("a server that rests was asked for %v", asked)
		}
	})
}
