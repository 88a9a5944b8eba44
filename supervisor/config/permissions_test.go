package config_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

func permissionsOf(files ...config.File) config.Set {
	var parsed []config.Parsed
	for _, f := range files {
		parsed = append(parsed, config.Parse(f))
	}
	return config.Merge(parsed, config.Context{})
}

func file(scope messages.Scope, text string) config.File {
	return config.File{Path: "/" + string(scope) + ".json", Scope: scope, Data: []byte(text)}
}

func words(rules []access.Rule) string {
	var all []string
	for _, r := range rules {
		all = append(all, r.String()+" "+r.Source.String())
	}
	return strings.Join(all, "; ")
}

// TestPermissionsOfEveryScope: all files' rules count, those of the project if they restrict.
func TestPermissionsOfEveryScope(t *testing.T) {
	for _, c := range []struct {
		name         string
		files        []config.File
		own, managed string
		def, floor   access.Verdict
		problem      string
	}{
		{name: "one's own", files: []config.File{file(messages.ScopeUser, `{"permissions": {"allow": ["a:x"], "default": "ask"}}`)},
			own: "allow a:x /user.json:1:28, user", def: access.Ask},
		{name: "a project's", files: []config.File{file(messages.ScopeProject,
			`{"permissions": {"allow": ["a:x"], "deny": ["a:y"], "ask": ["a:z"], "default": "allow"}}`)},
			own:     "deny a:y /project.json:1:45, project; ask a:z /project.json:1:61, project",
			problem: "permissions.allow: a project file can restrict and not allow"},
		{name: "a local one's", files: []config.File{file(messages.ScopeLocal, `{"permissions": {"allow": ["a:x"]}}`)},
			problem: "can restrict and not allow"},
		{name: "a named one's", files: []config.File{file(messages.ScopeDynamic, `{"permissions": {"allow": ["a:x"]}}`)},
			own: "allow a:x /dynamic.json:1:28, dynamic"},
		{name: "the organisation's", files: []config.File{file(messages.ScopeManaged, `{"permissions": {"deny": ["a:x"], "default": "ask"}}`),
			file(messages.ScopeUser, `{"permissions": {"default": "allow"}}`)},
			managed: "deny a:x /managed.json:1:27, managed", def: access.Allow, floor: access.Ask},
		{name: "the later default of one's own counts", files: []config.File{
			file(messages.ScopeDynamic, `{"permissions": {"default": "allow"}}`), file(messages.ScopeUser, `{"permissions": {"default": "deny"}}`)},
			def: access.Allow},
		{name: "a project makes it stricter", files: []config.File{
			file(messages.ScopeUser, `{"permissions": {"default": "allow"}}`), file(messages.ScopeProject, `{"permissions": {"default": "deny"}}`)},
			def: access.Deny},
		{name: "and never looser", files: []config.File{
			file(messages.ScopeUser, `{"permissions": {"default": "deny"}}`), file(messages.ScopeProject, `{"permissions": {"default": "ask"}}`)},
			def: access.Deny},
		{name: "a deny that cannot be read closes", files: []config.File{file(messages.ScopeUser, `{"permissions": {"deny": ["githb"]}}`)},
			own: "deny githb /user.json:1:27, user", problem: `permissions.deny: "githb": it names no server and no tool; write mcp__github`},
		{name: "an allow that cannot is none", files: []config.File{file(messages.ScopeUser, `{"permissions": {"allow": ["mcp__*"]}}`)},
			problem: "only after a literal server"},
		{name: "no list", files: []config.File{file(messages.ScopeUser, `{"permissions": {"ask": "a:x"}}`)},
			own: "deny ask /user.json:1:25, user", problem: "permissions.ask: found text instead of a list"},
		{name: "no text", files: []config.File{file(messages.ScopeUser, `{"permissions": {"deny": [7]}}`)},
			own: "deny deny /user.json:1:27, user", problem: "found a number instead of a rule in quotes"},
		{name: "no object", files: []config.File{file(messages.ScopeUser, `{"permissions": []}`)},
			own: "deny permissions /user.json:1:17, user", problem: "permissions: found a list instead of an object"},
		{name: "another key", files: []config.File{file(messages.ScopeUser, `{"permissions": {"denny": ["a:x"]}}`)},
			own: "deny denny /user.json:1:18, user", problem: "this version does not know the key; did you mean deny?"},
		{name: "another default", files: []config.File{file(messages.ScopeUser, `{"permissions": {"default": "never"}}`)},
			own: "deny default /user.json:1:29, user", problem: `unknown value "never"; write allow, ask or deny`},
		{name: "twice", files: []config.File{file(messages.ScopeUser, `{"permissions": {"deny": ["a:x"]}, "permissions": {"deny": ["a:y"]}}`)},
			own: "deny a:y /user.json:1:61, user; deny a:x /user.json:1:27, user", problem: "the key stands twice"},
	} {
		set := permissionsOf(c.files...)
		p := set.Permissions
		if got := words(p.Own.Rules); got != c.own {
			t.Errorf("%s: own %q, want %q", c.name, got, c.own)
		}
		if got := words(p.Managed.Rules); got != c.managed {
			t.Errorf("%s: managed %q, want %q", c.name, got, c.managed)
		}
		if p.Own.Default != c.def || p.Managed.Default != c.floor {
			t.Errorf("%s: default %q, managed %q", c.name, p.Own.Default, p.Managed.Default)
		}
		var problems []string
		for _, q := range set.Problems {
			problems = append(problems, q.Error())
		}
		if all := strings.Join(problems, "\n"); !strings.Contains(all, c.problem) || c.problem == "" && all != "" {
			t.Errorf("%s: %q, want %q", c.name, all, c.problem)
		}
	}
}

// TestAManagedFileOfRulesAloneLeavesTheServers to the person, as one with a policy does.
func TestAManagedFileOfRulesAloneLeavesTheServers(t *testing.T) {
	set := permissionsOf(file(messages.ScopeManaged, `{"permissions": {"deny": ["mcp__a"]}}`),
		file(messages.ScopeUser, `{"mcpServers": {"a": {"command": "x"}}}`))
	if _, ok := set.Specs["a"]; !ok || len(set.Permissions.Managed.Rules) != 1 {
		t.Errorf("%+v", set)
	}
}

// More rules than are read deny everything, as unreadable ones do, and rules that match no server are compared with the
// names of servers up to a bound.
func TestRulesAreBounded(t *testing.T) {
	servers, rules := strings.Builder{}, strings.Builder{}
	for i := range config.MaxServers {
		fmt.Fprintf(&servers, `"server%d": {"command": "x"},`, i)
	}
	for i := range config.MaxList + 1 {
		fmt.Fprintf(&rules, `"mcp__zerver%d__x",`, i)
	}
	set := config.Merge([]config.Parsed{config.Parse(config.File{Path: "f", Scope: messages.ScopeProject,
		Data: []byte(`{"mcpServers": {` + servers.String() + `}, "permissions": {"deny": [` + rules.String() + `]}}`)})}, config.Context{})
	if got := len(set.Permissions.Own.Rules); got != config.MaxList+1 { // the last one denies everything
		t.Errorf("%d rules", got)
	}
	if got := set.Permissions.Own.Rules[config.MaxList]; got.Verdict != access.Deny {
		t.Errorf("%+v", got)
	}
	if len(set.Problems) > 110 || !slices.ContainsFunc(set.Problems, func(p config.Problem) bool {
		return strings.Contains(p.Text, "more than 4096 rules")
	}) {
		t.Errorf("%d problems", len(set.Problems))
	}
}
