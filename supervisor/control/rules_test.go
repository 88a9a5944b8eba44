package control_test

import (
	"reflect"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// TestRulesTravel: rules decide the same after they have travelled, including those that cannot be read.
func TestRulesTravel(t *testing.T) {
	at := access.Source{File: "/f", Line: 3, Col: 4, Scope: messages.ScopeUser}
	rule := access.MustParse(access.Deny, "fs:write(path:/etc/*)")
	rule.Source = at
	in := access.Rules{
		Managed: access.Set{Rules: []access.Rule{access.Unreadable("githb", at)}, Default: access.Ask, DefaultSource: at},
		Own:     access.Set{Rules: []access.Rule{rule, access.MustParse(access.Allow, "mcp__a")}}, Hints: true,
	}
	if out := control.RulesOf(in).Access(); !reflect.DeepEqual(in, out) {
		t.Errorf("%+v", out)
	}
	newer := control.Rules{Own: control.RuleSet{Rules: []control.Rule{{Verdict: access.Allow, Text: "a:x?y(", Source: at}}}}
	if d := access.Decide(newer.Access(), access.Request{Server: "b", Tool: "c"}); d.Verdict != access.Deny {
		t.Errorf("a rule that nobody can read: %+v", d)
	}
}
