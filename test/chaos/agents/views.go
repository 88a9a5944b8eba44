package agents

import (
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// viewsAt returns the views of all agents as the gateway knows them from a time on. One that has not begun shows everything.
func viewsAt(p scenario.Plan, at time.Duration) map[string]config.View {
	all := map[string]config.View{}
	for _, a := range p.Agents {
		if a.Held == "" {
			continue
		}
		all[a.Held] = config.View{}
		for _, v := range a.Within {
			if time.Duration(v.At) <= at {
				all[a.Held] = configOf(v)
			}
		}
	}
	return all
}

// configOf returns a view in the form in which the gateway takes it.
func configOf(v scenario.View) (c config.View) {
	c.Servers = v.Servers
	for _, rule := range v.Deny {
		c.Rules.Rules = append(c.Rules.Rules, ruleOf(access.Deny, rule))
	}
	for _, rule := range v.Only {
		c.Rules.Default = access.Deny
		c.Rules.Rules = append(c.Rules.Rules, ruleOf(access.Allow, rule))
	}
	return c
}

// ruleOf returns the rule about SERVER:TOOL, or SERVER:*.
func ruleOf(verdict access.Verdict, text string) access.Rule {
	server, tool, _ := strings.Cut(text, ":")
	if tool != scenario.WholeServer {
		text = access.Exact(server, tool)
	}
	return access.MustParse(verdict, text)
}

// viewOps are the operations that replace the views, at the times at which one of them changes.
func (f *Fleet) viewOps() (all []Op) {
	planned := map[time.Duration]bool{0: true}
	for _, a := range f.Plan.Agents {
		for _, v := range a.Within {
			if at := time.Duration(v.At); !planned[at] {
				planned[at] = true
				all = append(all, Op{at, func() { f.gateway.SetViews(viewsAt(f.Plan, at)) }})
			}
		}
	}
	return all
}

// tokenFor returns the agent's bearer token, and principal in whose name and by which view it comes.
func tokenFor(a *scenario.PlannedAgent) (token string, principal serve.Principal) {
	token, principal = tokenOf(a.As), serve.Principal{Name: a.As}
	if a.Held != "" && a.Through == scenario.ThroughToken {
		token, principal.View = token+"-"+a.Held, a.Held
	}
	return token, principal
}

// mayHide reports whether the agent's view has hidden the tool of a call at any time since its begin: then the manager need not see it.
func (a *agent) mayHide(call *history.Event) bool {
	part, same := a.plan.PartDuring(call.Server, call.T, a.fleet.Now())
	return !same || !part.Has(call.Tool)
}

// isUnknown reports whether an error says that there is no such thing, as the gateway says of what a view hides.
func isUnknown(text string) bool {
	return strings.HasPrefix(text, "Unknown tool: ") || strings.HasPrefix(text, "there is no ")
}
