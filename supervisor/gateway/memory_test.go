package gateway_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// An agent that comes while servers start gets the tools that they had in an earlier run, under the names that they will have and in their
// order. A server that has failed or was disabled offers them no more, and one that has connected offers what it has now.
func TestAnAgentGetsTheToolsOfServersThatStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := supervisor.Config{CacheDir: t.TempDir(), RememberTools: true}
		run := func(tool string, prepare func(s *supervisortest.Server)) *supervisor.Manager {
			own := cfg
			for _, name := range []string{"broken", "disabled", "live", "silent"} {
				s := supervisortest.NewServer(name, text(tool), text("read"))
				prepare(s)
				own = supervisortest.AddTo(own, s)
			}
			m, err := supervisor.Start(t.Context(), own)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		m := run("write", func(*supervisortest.Server) {})
		if err := m.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}

		servers := map[string]*supervisortest.Server{}
		m = run("changed", func(s *supervisortest.Server) {
			servers[s.Name()] = s
			s.SetSilent(true)
		})
		defer m.Close(t.Context())
		e := serveAll(t, m, gateway.Config{Manager: m})
		a := e.agent("a", "/mcp", "{}")
		list := func(path string) []string { return tools(t, e.agent("a", path, "{}").ask("tools/list", "{}")) }
		names := func(servers ...string) (all []string) {
			for _, s := range servers {
				all = append(all, s+"__read", s+"__write")
			}
			return all
		}
		if got, want := tools(t, a.ask("tools/list", "{}")), names("broken", "disabled", "live", "silent"); !slices.Equal(got, want) {
			t.Fatalf("while they start: %v", got)
		}
		if got := list("/mcp/s/live"); !slices.Equal(got, []string{"read", "write"}) && !slices.Equal(got, names("live")) {
			t.Errorf("on the path of one server: %v", got)
		}

		servers["broken"].Refuse(errors.New("ouch"))
		servers["broken"].Crash()
		servers["live"].SetSilent(false)
		servers["live"].Crash()
		if err := m.Toggle(t.Context(), "disabled", false); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * time.Second)
		want := append([]string{"live__changed", "live__read"}, names("silent")...)
		if got := tools(t, a.ask("tools/list", "{}")); !slices.Equal(got, want) {
			t.Errorf("afterwards: %v, want %v", got, want)
		}
		if got := list("/mcp"); !slices.Equal(got, want) {
			t.Errorf("a second agent: %v, want %v", got, want)
		}
	})
}
