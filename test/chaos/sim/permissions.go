package sim

import (
	"context"
	"fmt"

	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// permissionRules are the rules that the scenario gives the manager now: those of its commands, over a default that asks if it is
// to ask.
func (w *simulation) permissionRules() (rules access.Rules) {
	if w.plan.Scenario.Manager.Ask {
		rules.Own.Default = access.Ask
	}
	w.eachServer(func(h *simServer) {
		for _, tool := range h.server.Refused {
			text := h.server.Name + ":" + tool
			if tool != scenario.WholeServer {
				text = access.Exact(h.server.Name, tool)
			}
			rules.Own.Rules = append(rules.Own.Rules, access.MustParse(access.Deny, text))
		}
	})
	return rules
}

// permitFunc is the command that replaces the rules. Those that are in force when it has been answered are what Permissions and
// Decide say, unless others were given meanwhile.
func (w *simulation) permitFunc(ctx context.Context, h *simServer) func() error {
	rules, server := w.permissionRules(), h.server
	count := w.permitCount.Add(1)
	return func() error {
		err := w.manager.SetPermissions(ctx, rules)
		if err != nil {
			return err
		}
		var problem string
		if n := len(w.manager.Permissions().Own.Rules); n != len(rules.Own.Rules) {
			problem = fmt.Sprintf("%d rules were given, and %d are in force", len(rules.Own.Rules), n)
		}
		for _, tool := range server.Refused {
			if d := w.manager.Decide(server.Name, tool, nil); d.Verdict != access.Deny {
				problem = fmt.Sprintf("the tool %s is denied, and the manager says that it would decide %s: %s", tool, d.Verdict, d.Why)
			}
		}
		if d := w.manager.Decide(server.Name, scenario.ReadTool, nil); server.LetsThrough(scenario.ReadTool) && d.Verdict == access.Deny {
			problem = "the tool read is denied by no rule, and the manager says that it would: " + d.Why
		}
		if problem != "" && count == w.permitCount.Load() {
			w.reportBrokenPromise(server.Name, problem)
		}
		return nil
	}
}
