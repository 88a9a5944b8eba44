package drills

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// follower is an agent that lists again after each notification of a change, and what it was given last.
type follower struct {
	*agent
	lists   map[string][]string
	notices map[string]int
}

// quietTime is the time after which all that has changed is listed and told: lists take up to half of it.
const quietTime = time.Minute

// playFollowed changes what servers offer, which may take long to list, and which servers there are, and judges that agents that list when they are told
// have what there is.
func playFollowed(s *stage) {
	items := []string{"one", "two", "three"}
	var servers []*server
	slowness := map[string]*atomic.Int64{} // nanoseconds
	for _, name := range []string{"alpha", "beta"} {
		srv := newServer(name, "one")
		slowness[name] = &atomic.Int64{}
		srv.instead = func(c *conn, m message) bool {
			takes := time.Duration(slowness[name].Load())
			if takes == 0 || !strings.HasSuffix(m.Method, "/list") {
				return false
			}
			c.work.Go(func() {
				select {
				case <-time.After(takes):
					c.answerMessage(m, "") // with what is offered then
				case <-c.ctx.Done():
				}
			})
			return true
		}
		srv.declared = map[string]any{"prompts": map[string]any{"listChanged": true}, "resources": map[string]any{"listChanged": true}}
		if s.isOneIn(4) {
			srv.spec.Connect, srv.spec.IdleTimeout = messages.Lazy, messages.Duration(10*time.Second)
		}
		servers = append(servers, srv)
	}
	m := s.connectServers(supervisor.Config{}, servers...)
	if m == nil {
		return
	}
	for _, srv := range servers { // a lazy one is known once it was connected
		_, _ = m.CallServerTool(s.ctx, srv.name, "one", nil)
	}
	g := s.openGateway(gateway.Config{})
	var followers []*follower
	for range 1 + s.rng.IntN(2) {
		s.modernAgents = s.isOneIn(2)
		f := &follower{agent: s.joinAgent(g, serve.Principal{Name: "anna"}, serve.Path{}, nil), lists: map[string][]string{}, notices: map[string]int{}}
		f.listenFor(s, map[string]any{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true})
		followers = append(followers, f)
	}
	disabled := map[string]bool{}
	for range 6 + s.rng.IntN(6) {
		srv := pickOne(s, servers...)
		switch n := s.rng.IntN(6); {
		case n == 0:
			takes := pickOne(s, 0, s.drawSpan(0, 2*time.Second), s.drawSpan(2*time.Second, 15*time.Second))
			slowness[srv.name].Store(int64(takes))
			s.addStory("the lists of %s take %s", srv.name, takes)
		case n == 1 && srv.spec.Connect != messages.Lazy:
			disabled[srv.name] = !disabled[srv.name]
			s.addStory("%s is disabled: %t", srv.name, disabled[srv.name])
			_ = m.Toggle(s.ctx, srv.name, !disabled[srv.name])
		case n == 2:
			s.addStory("%s crashes", srv.name)
			srv.endConns()
		case srv.spec.Connect == messages.Lazy || disabled[srv.name]:
			// What a server that rests, or is disabled, announces is heard by no one.
		default:
			kind := pickOne(s, "tools", "prompts", "resources")
			var offered []map[string]any
			for _, item := range items {
				if s.isOneIn(2) {
					definition := toolNamed(item)
					definition["uri"] = "drill://" + srv.name + "/" + item
					offered = append(offered, definition)
				}
			}
			srv.mu.Lock()
			if kind == "tools" {
				srv.tools = offered
			} else {
				srv.offers[kind] = offered
			}
			srv.mu.Unlock()
			srv.notifyClients("notifications/"+kind+"/list_changed", nil)
			s.addStory("%s has %d %s", srv.name, len(offered), kind)
		}
		s.letPass(pickOne(s, 0, s.drawSpan(0, 3*time.Second), quietTime))
		if f := pickOne(s, followers...); s.isOneIn(2) {
			f.listAnew(s, pickOne(s, listKinds...))
		}
		if s.isOneIn(2) {
			continue
		}
		s.letPass(quietTime)
		for _, f := range followers {
			if !checkFollower(s, f, servers, disabled) {
				return
			}
		}
	}
}

// listAnew has an agent list one kind, and notes how often it had been told before that of a change.
func (f *follower) listAnew(s *stage, kind struct{ method, list, member, changed string }) {
	f.notices[kind.list] = len(f.notesOf(kind.changed))
	f.lists[kind.list] = f.listNames(s, kind.method, kind.list, kind.member)
}

// checkFollower judges, after a quiet time, the newest lists of an agent: each is the list of now, or the gateway has notified the agent of a
// change since it was read.
func checkFollower(s *stage, f *follower, servers []*server, disabled map[string]bool) bool {
	for _, kind := range listKinds {
		want := []string{}
		for _, srv := range servers {
			if disabled[srv.name] {
				continue
			}
			srv.mu.Lock()
			offered := srv.offers[kind.list]
			if kind.list == "tools" {
				offered = srv.tools
			}
			srv.mu.Unlock()
			for _, item := range offered {
				if kind.member == "uri" {
					want = append(want, fmt.Sprint(item["uri"]))
				} else {
					want = append(want, srv.name+"__"+fmt.Sprint(item["name"]))
				}
			}
		}
		slices.Sort(want)
		got, isListed := f.lists[kind.list]
		if isListed && !slices.Equal(got, want) && len(f.notesOf(kind.changed)) == f.notices[kind.list] {
			s.reportFinding("I26", "", "%s: an agent (modern: %t) was given %q, there is %q since %s, and it was not told", kind.method, f.modern, got, want, quietTime)
			return false
		}
		if isListed && !s.isOneIn(3) {
			continue
		}
		f.listAnew(s, kind)
	}
	return true
}
