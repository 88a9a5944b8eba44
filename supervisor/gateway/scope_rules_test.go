package gateway

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// A view shows a server that it lists, unless its rules deny all of it: by one rule, or by a default that denies and no rule that allows
// something of this server.
func TestWhichServersAViewShows(t *testing.T) {
	allow := func(text string) access.Rule { return access.MustParse(access.Allow, text) }
	deny := func(text string) access.Rule { return access.MustParse(access.Deny, text) }
	for what, c := range map[string]struct {
		servers  []string
		fallback access.Verdict
		rules    []access.Rule
		want     bool
	}{
		"everything":                         {want: true},
		"a list with it":                     {servers: []string{"two", "one"}, want: true},
		"a list without it":                  {servers: []string{"two"}},
		"an empty list":                      {servers: []string{}},
		"a rule denies it":                   {rules: []access.Rule{deny("mcp__one__*")}},
		"a rule denies a tool of it":         {rules: []access.Rule{deny("mcp__one__x")}, want: true},
		"a rule denies another":              {rules: []access.Rule{deny("mcp__two__*")}, want: true},
		"the default denies":                 {fallback: access.Deny},
		"but a rule allows a tool of it":     {fallback: access.Deny, rules: []access.Rule{allow("mcp__one__x")}, want: true},
		"and a rule allows another's":        {fallback: access.Deny, rules: []access.Rule{allow("mcp__two__x")}},
		"and a rule denies a tool of it":     {fallback: access.Deny, rules: []access.Rule{deny("mcp__one__x")}},
		"the default allows":                 {fallback: access.Allow, want: true},
		"a list with it, the default denies": {servers: []string{"one"}, fallback: access.Deny},
	} {
		f := newFilter(config.View{Servers: c.servers, Rules: access.Set{Default: c.fallback, Rules: c.rules}})
		if got := f.showsServer("one"); got != c.want {
			t.Errorf("%s: shown %v", what, got)
		}
		if got := (&scope{parts: []*filter{f, newFilter(config.View{})}}).showsServer("one"); got != c.want {
			t.Errorf("%s, beside a view of everything: shown %v", what, got)
		}
	}
	if (&scope{missing: "x"}).showsServer("one") {
		t.Error("a view that is not configured shows a server")
	}
}

// A task leaves the table once, when its time is over or its agents have ended, whichever comes first.
func TestATaskLeavesTheTableOnce(t *testing.T) {
	unbound := 0
	c := &modernCall{agents: &modernAgents{g: &Gateway{}, principal: "anna"}}
	one := &task{call: c, expiry: time.AfterFunc(time.Hour, func() {}), unbind: func() bool { unbound++; return true }}
	two := &task{call: c, expiry: time.AfterFunc(time.Hour, func() {}), unbind: func() bool { unbound++; return true }}
	ts := &tasks{byPrincipal: map[string][]*task{"anna": {one, two}}, count: 2}
	if !ts.forget(one) || ts.forget(one) || ts.count != 1 || unbound != 1 || one.expiry.Stop() || len(ts.byPrincipal["anna"]) != 1 {
		t.Errorf("after the first: %+v, unbound %d", ts, unbound)
	}
	if !ts.forget(two) || ts.count != 0 || unbound != 2 || len(ts.byPrincipal) != 0 {
		t.Errorf("after the second: %+v, unbound %d", ts, unbound)
	}
}

// 2025-11-25, Tasks: "Once a task reaches a terminal status, it MUST NOT transition": the time of its last change stays as well.
func TestATaskThatHasEndedChangesNoMore(t *testing.T) {
	for _, ended := range []bool{false, true} {
		c := &modernCall{agents: &modernAgents{g: &Gateway{}}}
		c.task = &task{call: c}
		if ended {
			c.task.end = notEnded + 1
		}
		if c.noteAsked(); c.task.updated.IsZero() != ended {
			t.Errorf("ended %v: changed at %v", ended, c.task.updated)
		}
	}
	(&modernCall{agents: &modernAgents{g: &Gateway{}}}).noteAsked() // a call that is no task has none to change
}
