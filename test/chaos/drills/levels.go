package drills

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// leveledAgent is an agent with a level for log messages, and the one server of its path, if that has one.
type leveledAgent struct {
	*agent
	server string
	rank   int // -1 before it has set one
}

// playLevels lets agents set the levels of the log messages that they want, come and go, and compares what the servers are asked for, and what
// the agents get, with that.
func playLevels(s *stage) {
	var servers []*server
	configured := map[string]string{}
	for _, name := range []string{"files", "mail"} {
		srv := newServer(name, "log")
		srv.handle = func(_ context.Context, c *toolCall) (any, error) {
			for _, level := range messages.LogLevels {
				c.conn.sendMessage(map[string]any{"method": "notifications/message", "params": map[string]any{"level": level, "data": level}})
			}
			time.Sleep(time.Second)
			return textResult("done"), nil
		}
		srv.instead = func(c *conn, m message) bool {
			// By the time for which its list takes, the session has asked for the configured level, before any agent can want another one.
			if m.Method == "tools/list" {
				c.work.Go(func() {
					time.Sleep(time.Millisecond)
					c.answerMessage(m, "")
				})
			}
			return m.Method == "tools/list"
		}
		if s.isOneIn(3) {
			srv.spec.LogLevel = pickOne(s, messages.LogLevels...)
			configured[name] = srv.spec.LogLevel
		}
		servers = append(servers, srv)
	}
	if s.connectServers(supervisor.Config{}, servers...) == nil {
		return
	}
	g := s.openGateway(gateway.Config{})
	var present []*leveledAgent
	for range 6 + s.rng.IntN(6) {
		switch n := s.rng.IntN(8); {
		case n == 6:
			srv := pickOne(s, servers...)
			s.addStory("%s crashes", srv.name)
			srv.forgetHeard()
			srv.endConns()
			s.letPass(time.Minute)
		case n == 7:
			if !configureLevel(s, pickOne(s, servers...), servers, configured) {
				return
			}
		case n == 0 || len(present) == 0:
			a := &leveledAgent{rank: -1, server: pickOne(s, "", "", "files")}
			a.agent = s.joinAgent(g, serve.Principal{Name: pickOne(s, "anna", "ben")}, serve.Path{Server: a.server}, nil)
			present = append(present, a)
		case n == 1 && len(present) > 1:
			i := s.rng.IntN(len(present))
			s.addStory("an agent with the level %d goes", present[i].rank)
			_ = present[i].out.Close()
			present = slices.Delete(present, i, i+1)
			s.letPass(10 * time.Second)
		case n == 2 && !checkLogs(s, pickOne(s, present...)):
			return
		default:
			a := pickOne(s, present...)
			a.rank = s.rng.IntN(len(messages.LogLevels))
			s.addStory("an agent at %q sets the level %s", a.server, messages.LogLevels[a.rank])
			if _, err := a.callMethod(s.ctx, "logging/setLevel", map[string]any{"level": messages.LogLevels[a.rank]}); err != nil {
				s.reportFinding("I24", "", "logging/setLevel ended with %v", err)
			}
		}
		s.letPass(time.Second)
		for _, srv := range servers {
			if !checkAskedLevel(s, srv, present, configured[srv.name]) {
				return
			}
		}
	}
}

// configureLevel gives a server a spec with another level.
func configureLevel(s *stage, srv *server, servers []*server, configured map[string]string) bool {
	level := pickOne(s, append([]string{""}, messages.LogLevels...)...)
	s.addStory("%s is configured with the level %q", srv.name, level)
	if level != srv.spec.LogLevel {
		srv.forgetHeard() // it is connected anew
	}
	srv.spec.LogLevel, configured[srv.name] = level, level
	specs := map[string]supervisor.Spec{}
	for _, other := range servers {
		specs[other.name] = other.spec
	}
	if res, err := s.manager.SetServers(s.ctx, specs); err != nil || len(res.Errors) > 0 {
		s.reportFinding("I16", srv.name, "the level %q is refused: %v %v", level, res.Errors, err)
		return false
	}
	s.letPass(time.Minute)
	return true
}

// checkAskedLevel judges the level that a server was asked for last: the finest that an agent at it, or its configuration, wants.
func checkAskedLevel(s *stage, srv *server, present []*leveledAgent, configured string) bool {
	finest := len(messages.LogLevels)
	for _, a := range present {
		if a.rank >= 0 && (a.server == "" || a.server == srv.name) {
			finest = min(finest, a.rank)
		}
	}
	want := configured
	if rank := slices.Index(messages.LogLevels, configured); finest < len(messages.LogLevels) && (rank < 0 || finest < rank) {
		want = messages.LogLevels[finest]
	}
	asked := srv.heardOf("logging/setLevel")
	got := ""
	if len(asked) > 0 {
		var p struct{ Level string }
		_ = json.Unmarshal(asked[len(asked)-1].params, &p)
		got = p.Level
	}
	// When no agent wants a level any more, the gateway may ask for info.
	if want == "" && got == "info" {
		return true
	}
	return expectEqual(s, "I24", srv.name, "the level that it was asked for last", got, want)
}

// checkLogs judges the messages that an agent gets of its own call: those that its level lets through.
func checkLogs(s *stage, a *leveledAgent) bool {
	if a.rank < 0 {
		return true // an agent that has set no level gets what the gateway chooses
	}
	before := len(a.notesOf("notifications/message"))
	name := "files__log"
	if a.server != "" {
		name = "log"
	}
	if _, err := a.callMethod(s.ctx, "tools/call", map[string]any{"name": name, "arguments": struct{}{}}); err != nil {
		s.reportFinding("I24", "files", "the call of %s ended with %v", name, err)
		return false
	}
	var got []string
	for _, n := range a.notesOf("notifications/message")[before:] {
		var p struct{ Data string }
		_ = json.Unmarshal(n.Params, &p)
		got = append(got, p.Data)
	}
	if want := messages.LogLevels[a.rank:]; !slices.Equal(got, want) {
		s.reportFinding("I24", "files", "an agent that wants %s and more severe got %q of its call", messages.LogLevels[a.rank], got)
		return false
	}
	return true
}
