package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// A loggingServer notes the levels that it is asked for, and who asks for none.
type loggingServer struct {
	mu    sync.Mutex
	asked []string
	end   context.CancelFunc
}

func (s *loggingServer) serveConnection(ctx context.Context, peer inprocess.Peer) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	s.mu.Lock()
	s.end = end
	s.mu.Unlock()
	for {
		body, err := peer.Read(ctx)
		if err != nil {
			return err
		}
		id := rawjson.Member(body, "id")
		method, _ := rawjson.Text(rawjson.Member(body, "method"))
		result := "{}"
		switch {
		case id == nil:
			continue
		case method == "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"logging":{}},"serverInfo":{"name":"n","version":"1"}}`
		case method == "logging/setLevel":
			level, _ := rawjson.Text(rawjson.Member(rawjson.Member(body, "params"), "level"))
			s.mu.Lock()
			s.asked = append(s.asked, level)
			s.mu.Unlock()
		}
		if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)); err != nil {
			return err
		}
	}
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
	e, g := startEndpoint(t, cfg, views, map[string]serve.Principal{"a": {Name: "a"}, "blind": {Name: "blind", View: "other"}})
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
