package gateway

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// A scope decides which servers and tools a credential and a path leave: each has a configured view, or none, and what one of them
// hides is hidden. So no path shows more than the credential. It is immutable.
type scope struct {
	// parts are the configured views that count; all of them must show a thing.
	parts []*filter
	// prefix is that of the path's view, else of the credential's, else of the gateway.
	prefix Prefix
	// missing is the name of a view that is not configured: nothing is shown then.
	missing string
}

// A filter is one configured view, ready for many questions.
type filter struct {
	servers []string // nil: all
	rules   *access.Matcher
	prefix  Prefix
}

func newFilter(v config.View) *filter {
	return &filter{servers: v.Servers, rules: access.Compile(access.Rules{Own: v.Rules}), prefix: Prefix(v.Prefix)}
}

// scopeOf returns the scope of a view. The caller holds mu.
func (g *Gateway) scopeOf(key viewKey) *scope {
	names := [2]string{key.bound, key.path}
	s := g.scopes[names]
	if s != nil {
		return s
	}
	s = &scope{prefix: g.cfg.Prefix}
	for _, name := range names {
		if name == "" {
			continue
		}
		f := g.filters[name]
		if f == nil {
			s = &scope{prefix: s.prefix, missing: name}
			break
		}
		s.parts = append(s.parts, f)
		if f.prefix != "" {
			s.prefix = f.prefix
		}
	}
	g.scopes[names] = s
	return s
}

// SetViews replaces the configured views. Agents are notified of what has changed for them; a view that is gone shows nothing to those
// who use it. Requests that run are not ended.
func (g *Gateway) SetViews(views map[string]config.View) {
	filters := make(map[string]*filter, len(views))
	for name, v := range views {
		filters[name] = newFilter(v)
	}
	g.mu.Lock()
	g.filters, g.scopes = filters, map[[2]string]*scope{}
	principals := map[string]bool{} // those whose agents want a level
	for key, v := range g.views {
		v.scope.Store(g.scopeOf(key))
		v.mu.Lock()
		if v.finestRank() != noLevel {
			principals[key.principal] = true
		}
		v.mu.Unlock()
	}
	g.mu.Unlock()
	g.noteChange(func(*saidChanges) {})
	// A server that is shown now is to send what its new agents want, and one that is hidden no more than the others want.
	for _, principal := range slices.Sorted(maps.Keys(principals)) {
		g.askBehind(func(ctx context.Context) { g.askServers(ctx, g.all.Servers(), principal) })
	}
}

// showsServer reports whether anything of a server is shown.
func (s *scope) showsServer(server string) bool {
	return s.missing == "" && !slices.ContainsFunc(s.parts, func(f *filter) bool { return !f.showsServer(server) })
}

// showsServer: a server is hidden that is not listed, whose tools are all denied by one rule, or which no rule names where the default
// denies. Its resources and prompts are hidden with it.
func (f *filter) showsServer(server string) bool {
	if f.servers != nil && !slices.Contains(f.servers, server) || f.rules.Server(server).Verdict == access.Deny {
		return false
	}
	own := f.rules.Rules().Own
	return own.Default != access.Deny ||
		slices.ContainsFunc(own.Rules, func(r access.Rule) bool { return r.Verdict == access.Allow && r.Concerns(server) })
}

// showsTool reports whether some call of a tool is allowed. Rules see the server and its own name for the tool, never what is shown.
func (s *scope) showsTool(server, tool string) bool {
	if !s.showsServer(server) {
		return false
	}
	for _, f := range s.parts {
		if _, denied := f.rules.Tool(server, tool, "").AlwaysDenied(false, nil); denied {
			return false
		}
	}
	return true
}

// decide returns the decision about a call: that of the first view that does not allow it.
func (s *scope) decide(server, tool string, args json.RawMessage) access.Decision {
	if s.missing != "" {
		return access.Decision{Verdict: access.Deny, Why: "there is no view " + s.missing}
	}
	for _, f := range s.parts {
		d := f.rules.Tool(server, tool, "").Decide(access.Request{Server: server, Tool: tool, Args: args})
		if d.Verdict == access.Allow && !f.showsServer(server) {
			d = access.Decision{Verdict: access.Deny, Why: "the view does not show the server"}
		}
		if d.Verdict != access.Allow {
			return d
		}
	}
	return access.Decision{Verdict: access.Allow}
}
