package drills

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// plannedView is a configured view as the drill knows it.
type plannedView struct {
	servers []string // nil: all
	deny    []string // server, or server/tool
	allow   []string // as deny; set where the default denies
	prefix  string
}

// toConfig returns the view as the gateway is given it.
func (v *plannedView) toConfig() config.View {
	c := config.View{Servers: v.servers, Prefix: v.prefix}
	for verdict, list := range map[access.Verdict][]string{access.Deny: v.deny, access.Allow: v.allow} {
		for _, subject := range list {
			c.Rules.Rules = append(c.Rules.Rules, access.MustParse(verdict, "mcp__"+strings.Replace(subject, "/", "__", 1)))
		}
	}
	if v.allow != nil {
		c.Rules.Default = access.Deny
	}
	return c
}

// showsServer and showsTool say what agents see by the view.
func (v *plannedView) showsServer(server string) bool {
	switch {
	case v.servers != nil && !slices.Contains(v.servers, server), slices.Contains(v.deny, server):
		return false
	case v.allow == nil:
		return true
	}
	return slices.ContainsFunc(v.allow, func(subject string) bool { return subject == server || strings.HasPrefix(subject, server+"/") })
}

func (v *plannedView) showsTool(server, tool string) bool {
	return v.showsServer(server) && !slices.Contains(v.deny, server+"/"+tool) &&
		(v.allow == nil || slices.Contains(v.allow, server) || slices.Contains(v.allow, server+"/"+tool))
}

// drawView draws a view of these servers and tools.
func drawView(s *stage, servers, tools []string) *plannedView {
	v := &plannedView{prefix: pickOne(s, "", "", "always", "conflict", "never")}
	if s.isOneIn(3) {
		v.servers = []string{}
		for _, name := range servers {
			if s.isOneIn(2) {
				v.servers = append(v.servers, name)
			}
		}
	}
	for range s.rng.IntN(3) {
		subject := pickOne(s, servers...)
		if s.isOneIn(2) {
			subject += "/" + pickOne(s, tools...)
		}
		if s.isOneIn(2) {
			v.deny = append(v.deny, subject)
		} else {
			v.allow = append(v.allow, subject)
		}
	}
	return v
}

// viewer is an agent whose view is judged.
type viewer struct {
	*agent
	// held are the names of the views that hold it, server the one server of its path.
	held    []string
	server  string
	notices map[string]int
	lists   map[string][]string
}

// isAtHidden reports whether the server of the agent's path is hidden by a view that holds it.
func (v *viewer) isAtHidden(views map[string]*plannedView) bool {
	return v.server != "" && slices.ContainsFunc(v.held, func(name string) bool { return !views[name].showsServer(v.server) })
}

// The kinds of lists that an agent gets: their methods, members, the members that name an item, and the notification of a change.
var listKinds = []struct{ method, list, member, changed string }{
	{"tools/list", "tools", "name", "notifications/tools/list_changed"},
	{"prompts/list", "prompts", "name", "notifications/prompts/list_changed"},
	{"resources/list", "resources", "uri", "notifications/resources/list_changed"},
}

// playViews lets agents come through views that are replaced by others, and compares what they are shown, and may call, with the views.
func playViews(s *stage) {
	tools := []string{"read", "put", "write"}
	names := []string{"alpha", "beta", "gamma"}[:2+s.rng.IntN(2)]
	var servers []*server
	for _, name := range names {
		srv := newServer(name)
		var own []string
		for _, t := range tools {
			if !s.isOneIn(3) {
				own = append(own, t)
			}
		}
		srv.setTools(own...)
		for _, kind := range []string{"prompts", "resources"} {
			for _, item := range []string{"greet", "bye"} {
				if s.isOneIn(2) {
					srv.offers[kind] = append(srv.offers[kind], map[string]any{"name": item, "uri": "drill://" + item})
				}
			}
		}
		srv.handle = func(_ context.Context, c *toolCall) (any, error) { return textResult(name + "/" + c.tool), nil }
		servers = append(servers, srv)
	}
	m := s.connectServers(supervisor.Config{}, servers...)
	if m == nil {
		return
	}
	base := pickOne(s, "", "always", "conflict", "never")
	views := map[string]*plannedView{"one": drawView(s, names, tools), "two": drawView(s, names, tools)}
	g := s.openGateway(gateway.Config{Prefix: gateway.Prefix(base), Views: configOf(views)})
	var viewers []*viewer
	for range 1 + s.rng.IntN(3) {
		v := &viewer{}
		p, path := serve.Principal{Name: pickOne(s, "anna", "ben")}, serve.Path{}
		if s.isOneIn(2) {
			p.View = pickOne(s, "one", "two")
			v.held = append(v.held, p.View)
		}
		switch s.rng.IntN(4) {
		case 0:
			path.Server = pickOne(s, names...)
			v.server = path.Server
		case 1, 2:
			path.View = pickOne(s, "one", "two")
			v.held = append(v.held, path.View)
		}
		var err error
		s.modernAgents = s.isOneIn(2)
		v.agent, err = s.tryToJoin(g, p, path, nil)
		if isHidden := v.isAtHidden(views); isHidden != (err != nil) && !s.modernAgents {
			s.reportFinding("I26", v.server, "an agent held to %q came to the path of this server, which its view hides: %t, and was answered with %v", v.held, isHidden, err)
			return
		}
		if err == nil && !v.isAtHidden(views) { // one of the modern era would have nothing to listen to
			v.listenFor(s, map[string]any{"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true})
			viewers = append(viewers, v)
		}
	}
	for range 3 {
		s.letPass(3 * time.Second)
		for _, v := range viewers {
			if !checkViewer(s, v, servers, views, base) {
				return
			}
		}
		switch s.rng.IntN(4) {
		case 0:
			pickOne(s, servers...).setTools(tools[:s.rng.IntN(len(tools)+1)]...)
			s.addStory("a server has other tools")
		default:
			name := pickOne(s, "one", "two")
			if s.isOneIn(3) { // only another prefix
				other := *views[name]
				other.prefix = pickOne(s, "", "always", "conflict", "never")
				views[name] = &other
			} else {
				views[name] = drawView(s, names, tools)
			}
			g.SetViews(configOf(views))
			s.addStory("the view %s is %+v", name, *views[name])
		}
	}
	s.letPass(3 * time.Second)
	for _, v := range viewers {
		if !checkViewer(s, v, servers, views, base) {
			return
		}
	}
}

func configOf(views map[string]*plannedView) map[string]config.View {
	all := map[string]config.View{}
	for name, v := range views {
		all[name] = v.toConfig()
	}
	return all
}

// lead is where a name leads.
type lead struct{ shown, server, own string }

// leadsOf returns what an agent is to be shown of one kind, in the order of the servers.
func leadsOf(v *viewer, kind string, servers []*server, views map[string]*plannedView, base string) (all []lead) {
	prefix := base
	if prefix == "" {
		prefix = "always"
	}
	for _, name := range v.held {
		if own := views[name].prefix; own != "" {
			prefix = own
		}
	}
	if v.server != "" {
		prefix = "never"
	}
	count := map[string]int{}
	for _, srv := range servers {
		if v.server != "" && srv.name != v.server {
			continue
		}
		srv.mu.Lock()
		items := srv.tools
		if kind != "tools" {
			items = srv.offers[kind]
		}
		srv.mu.Unlock()
		for _, item := range items {
			own := fmt.Sprint(item["name"])
			if kind == "resources" {
				own = fmt.Sprint(item["uri"])
			}
			if slices.ContainsFunc(v.held, func(name string) bool {
				return kind == "tools" && !views[name].showsTool(srv.name, own) || !views[name].showsServer(srv.name)
			}) {
				continue
			}
			all = append(all, lead{own, srv.name, own})
			count[own]++
		}
	}
	seen := map[string]bool{}
	for i := range all {
		l := &all[i]
		switch {
		case kind == "resources":
			if seen[l.own] {
				l.shown = ""
			}
		case prefix == "always", prefix == "conflict" && count[l.own] > 1, prefix == "never" && seen[l.own]:
			l.shown = l.server + "__" + l.own
		}
		seen[l.own] = true
	}
	return slices.DeleteFunc(all, func(l lead) bool { return l.shown == "" })
}

// checkViewer judges what an agent is shown now, that it was told of a change, and where each name leads.
func checkViewer(s *stage, v *viewer, servers []*server, views map[string]*plannedView, base string) bool {
	if v.isAtHidden(views) {
		result, err := v.callMethod(s.ctx, "tools/list", nil)
		if err == nil {
			s.reportFinding("I26", v.server, "an agent held to %q is at the path of this server, which its view hides, and is shown %s", v.held, result)
		}
		v.lists = nil
		return err != nil
	}
	before := v.lists
	v.lists = map[string][]string{}
	for _, kind := range listKinds {
		leads := leadsOf(v, kind.list, servers, views, base)
		want := []string{}
		for _, l := range leads {
			want = append(want, l.shown)
		}
		slices.Sort(want)
		got := v.listNames(s, kind.method, kind.list, kind.member)
		if !slices.Equal(got, want) {
			s.reportFinding("I26", "", "%s: an agent held to %q at %q is shown %q, and must be shown %q", kind.method, v.held, v.server, got, want)
			return false
		}
		v.lists[kind.list] = got
		noticed := len(v.notesOf(kind.changed))
		if before != nil && noticed == v.notices[kind.changed] && !slices.Equal(before[kind.list], got) {
			s.reportFinding("I26", "", "%s: an agent held to %q was shown %q, is shown %q, and was not told", kind.method, v.held, before[kind.list], got)
			return false
		}
		if v.notices == nil {
			v.notices = map[string]int{}
		}
		v.notices[kind.changed] = noticed
		if len(leads) > 0 && !checkLead(s, v, kind.list, pickOne(s, leads...)) {
			return false
		}
	}
	return checkHidden(s, v, servers, views)
}

// checkLead judges where one name leads.
func checkLead(s *stage, v *viewer, kind string, l lead) bool {
	method, params, want := "tools/call", map[string]any{"name": l.shown, "arguments": struct{}{}}, l.server+"/"+l.own
	switch kind {
	case "prompts":
		method, params, want = "prompts/get", map[string]any{"name": l.shown}, l.server+" "+l.own
	case "resources":
		method, params, want = "resources/read", map[string]any{"uri": l.own}, `"text":"`+l.server+`"`
	}
	result, err := v.callMethod(s.ctx, method, params)
	if err != nil || !strings.Contains(string(result), want) {
		s.reportFinding("I26", l.server, "%s of %s, which leads to %s, ended with %s %v", method, l.shown, want, result, err)
		return false
	}
	return true
}

// checkHidden judges that a call of a tool which the views hide does not reach its server.
func checkHidden(s *stage, v *viewer, servers []*server, views map[string]*plannedView) bool {
	srv := pickOne(s, servers...)
	own := pickOne(s, "read", "put", "write")
	if !slices.ContainsFunc(v.held, func(name string) bool { return !views[name].showsTool(srv.name, own) }) {
		return true
	}
	before := len(srv.heardOf("tools/call"))
	shown := srv.name + "__" + own
	if v.server == srv.name {
		shown = own
	} else if v.server != "" {
		return true
	}
	result, err := v.callMethod(s.ctx, "tools/call", map[string]any{"name": shown, "arguments": json.RawMessage(`{}`)})
	if len(srv.heardOf("tools/call")) > before {
		s.reportFinding("I26", srv.name, "the tool %s is hidden from an agent held to %q, and its call reached the server: %s %v", own, v.held, result, err)
		return false
	}
	return true
}
