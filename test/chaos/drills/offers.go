package drills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// offeredNames are names of servers and of what they offer: some cannot stand in a qualified name, and some are too long for one.
var offeredNames = struct{ servers, items []string }{
	[]string{"alpha", "be.ta", "gam__ma", strings.Repeat("delta", 9)},
	[]string{"read_file", "send letter", "über", strings.Repeat("long_name_", 6) + "end", "plain"},
}

// playOffers lets servers with names of all kinds offer tools, prompts and resources, and uses each by the name that the manager gives it.
func playOffers(s *stage) {
	var servers []*server
	for _, name := range offeredNames.servers {
		if s.isOneIn(3) && len(servers) > 0 {
			continue
		}
		srv := newServer(name)
		srv.handle = func(_ context.Context, c *toolCall) (any, error) { return textResult(name + "/" + c.tool), nil }
		var tools []string
		for _, item := range offeredNames.items {
			if !s.isOneIn(3) {
				tools = append(tools, item)
			}
			if s.isOneIn(2) {
				srv.offers["prompts"] = append(srv.offers["prompts"], map[string]any{"name": item})
			}
			if s.isOneIn(2) {
				srv.offers["resources"] = append(srv.offers["resources"], map[string]any{"name": item, "uri": "drill://" + name + "/" + item})
			}
		}
		if s.isOneIn(2) {
			srv.offers["resourceTemplates"] = append(srv.offers["resourceTemplates"], map[string]any{"name": "state", "uriTemplate": "state://" + name + "/{id}"})
		}
		srv.setTools(tools...)
		servers = append(servers, srv)
	}
	cfg := supervisor.Config{Naming: messages.Naming{Style: pickOne(s, "", messages.StyleDouble, messages.StyleSingle), Limit: pickOne(s, 0, 0, 40, 128)}}
	m := s.connectServers(cfg, servers...)
	if m == nil {
		return
	}
	for range 3 {
		srv := pickOne(s, servers...)
		if !useTool(s, m, srv) || !usePrompt(s, m, cfg.Naming, srv) || !useResource(s, m, srv) || !checkMisspelt(s, m, srv) {
			return
		}
	}
	checkLists(s, m, servers)
}

// checkLists compares the lists of all servers with what these offer.
func checkLists(s *stage, m *supervisor.Manager, servers []*server) {
	var wantTools, wantPrompts, wantURIs, wantTemplates, tools, prompts, uris, templates []string
	for _, srv := range servers {
		for _, t := range srv.tools {
			wantTools = append(wantTools, srv.name+"/"+fmt.Sprint(t["name"]))
		}
		for _, p := range srv.offers["prompts"] {
			wantPrompts = append(wantPrompts, srv.name+"/"+fmt.Sprint(p["name"]))
		}
		for _, r := range srv.offers["resources"] {
			wantURIs = append(wantURIs, srv.name+" "+fmt.Sprint(r["uri"]))
		}
		for _, r := range srv.offers["resourceTemplates"] {
			wantTemplates = append(wantTemplates, srv.name+" "+fmt.Sprint(r["uriTemplate"]))
		}
	}
	names := map[string]bool{}
	entries, err := m.ToolsOf(s.ctx)
	for _, e := range entries {
		tools = append(tools, e.Tool.Server+"/"+e.Tool.Name)
		names[e.Name] = true
	}
	listed, promptErr := m.Prompts(s.ctx)
	for _, p := range listed {
		prompts = append(prompts, p.Server+"/"+p.Name)
		names["prompt "+p.Qualified] = true
	}
	resources, resourceErr := m.Resources(s.ctx)
	for _, r := range resources {
		uris = append(uris, r.Server+" "+r.URI)
	}
	patterns, templateErr := m.ResourceTemplates(s.ctx)
	for _, r := range patterns {
		templates = append(templates, r.Server+" "+r.URITemplate)
	}
	if err := errors.Join(err, promptErr, resourceErr, templateErr); err != nil {
		s.reportFinding("I20", "", "a list of all servers ended with %v", err)
	}
	for _, list := range []struct {
		what      string
		got, want []string
	}{{"tools", tools, wantTools}, {"prompts", prompts, wantPrompts}, {"resources", uris, wantURIs}, {"templates", templates, wantTemplates}} {
		slices.Sort(list.got)
		slices.Sort(list.want)
		if !slices.Equal(list.got, list.want) {
			s.reportFinding("I20", "", "the list of %s of all servers is %q, and these offer %q", list.what, list.got, list.want)
		}
	}
	if len(names) != len(tools)+len(prompts) {
		s.reportFinding("I14", "", "%d tools and prompts have %d names", len(tools)+len(prompts), len(names))
	}
}

// useTool calls a tool of a server by its qualified name and by its own.
func useTool(s *stage, m *supervisor.Manager, srv *server) bool {
	entries := m.Tools().Server(srv.name)
	if len(entries) == 0 {
		return true
	}
	e := pickOne(s, entries...)
	want := srv.name + "/" + e.Tool.Name
	res, err := m.CallTool(s.ctx, e.Name, nil)
	if err != nil || res.Text() != want {
		s.reportFinding("I20", srv.name, "the call of %s, which is %s, ended with %v", e.Name, want, err)
		return false
	}
	if res, err = m.CallServerTool(s.ctx, srv.name, e.Tool.Name, nil); err != nil || res.Text() != want {
		s.reportFinding("I20", srv.name, "the call of %s ended with %v", want, err)
		return false
	}
	return true
}

// usePrompt fills a prompt by its qualified name, before or after it was listed.
func usePrompt(s *stage, m *supervisor.Manager, naming messages.Naming, srv *server) bool {
	if len(srv.offers["prompts"]) == 0 {
		return true
	}
	own := fmt.Sprint(pickOne(s, srv.offers["prompts"]...)["name"])
	qualified := naming.Tool(srv.name, own)
	res, err := m.GetPrompt(s.ctx, qualified, nil)
	if err != nil || !strings.Contains(string(res.Raw), encodedText(srv.name+" "+own)) {
		s.reportFinding("I20", srv.name, "the prompt %s, which is %s of %s, ended with %v", qualified, own, srv.name, err)
		return false
	}
	return true
}

// encodedText returns a text as JSON has it, without quotes.
func encodedText(t string) string {
	b, _ := json.Marshal(t)
	return strings.Trim(string(b), `"`)
}

// useResource reads a resource of a server by its URI alone, one that it lists or one that its template describes.
func useResource(s *stage, m *supervisor.Manager, srv *server) bool {
	var uris []string
	for _, r := range srv.offers["resources"] {
		uris = append(uris, fmt.Sprint(r["uri"]))
	}
	if len(srv.offers["resourceTemplates"]) > 0 {
		uris = append(uris, "state://"+srv.name+"/7")
	}
	if len(uris) == 0 {
		return true
	}
	uri := pickOne(s, uris...)
	res, err := m.ReadResource(s.ctx, uri)
	if err != nil || !strings.Contains(string(res.Raw), `"text":"`+srv.name+`"`) {
		s.reportFinding("I20", srv.name, "the resource %s ended with %v", uri, err)
		return false
	}
	return true
}

// checkMisspelt uses names with one letter too few, and judges that the error names what was meant.
func checkMisspelt(s *stage, m *supervisor.Manager, srv *server) bool {
	misspell := func(name string) string {
		at := len(name)/2 + s.rng.IntN(len(name)/4)
		return name[:at] + name[at+1:]
	}
	var err error
	var what, want string
	var meant error
	entries := m.Tools().Server(srv.name)
	switch n := s.rng.IntN(3); {
	case n == 0 && len(entries) > 0:
		e := pickOne(s, entries...)
		if e.Tool.Name == "über" || e.Tool.Name == "plain" {
			return true // too short for one letter to be near
		}
		what, want, meant = misspell(e.Tool.Name), e.Tool.Name, supervisor.ErrUnknownTool
		_, err = m.CallServerTool(s.ctx, srv.name, what, nil)
	case n == 1:
		what, want, meant = misspell(srv.name+"xx")+"x", "", supervisor.ErrUnknownServer
		if srv.name == offeredNames.servers[3] {
			what, want = misspell(srv.name), srv.name
		}
		_, err = m.CallServerTool(s.ctx, what, "plain", nil)
	case len(srv.offers["resources"]) > 0:
		uri := fmt.Sprint(pickOne(s, srv.offers["resources"]...)["uri"])
		if what, meant = misspell(uri), supervisor.ErrUnknownResource; s.isOneIn(2) && slices.Contains([]string{"read_file", "send letter"}, uri[strings.LastIndex(uri, "/")+1:]) {
			want = uri
			_, err = m.ReadServerResource(s.ctx, srv.name, what)
		} else {
			_, err = m.ReadResource(s.ctx, what+"/nothing")
		}
	default:
		return true
	}
	var typed *supervisor.Error
	switch {
	case !errors.Is(err, meant) || !errors.As(err, &typed):
		s.reportFinding("I20", srv.name, "what is not there, %q, ended with %v", what, err)
	case want != "" && typed.Nearest != want:
		s.reportFinding("I20", srv.name, "%q is meant to be %q, and the error names %q", what, want, typed.Nearest)
	default:
		return true
	}
	return false
}
