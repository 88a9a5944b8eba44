package config_test

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

func TestPolicyOfCommands(t *testing.T) {
	seeds.Shows(t, "004.nfr3.server-validation")
	run := func(words ...string) messages.Spec { return messages.Spec{Command: words[0], Args: words[1:]} }
	with := func(s messages.Spec, name string) messages.Spec { s.Env = map[string]string{name: "/tmp"}; return s }
	helper := func(line string, args ...string) messages.Spec {
		return messages.Spec{URL: "https://h/mcp", Auth: &messages.Auth{Type: messages.AuthHelper, Command: line, Args: args}}
	}
	for _, c := range []struct {
		name  string
		allow string
		spec  messages.Spec
		want  bool
	}{
		{"by name", "npx", run("npx", "-y", "x"), true},
		{"another name", "npx", run("npxx"), false},
		{"the same name elsewhere", "npx", run("/tmp/npx"), false},
		{"the same name here", "npx", run("./npx"), false},
		{"found by another PATH", "npx", with(run("npx"), "PATH"), false},
		{"with something loaded", "npx", with(run("npx"), "LD_PRELOAD"), false},
		{"another variable", "npx", with(run("npx"), "API_KEY"), false},
		{"with its arguments", "npx -y @acme/*", run("npx", "-y", "@acme/a"), true},
		{"with others", "npx -y @acme/*", run("npx", "-y", "@other/a"), false},
		{"with more", "npx -y @acme/*", run("npx", "-y", "@acme/a", "--x"), false},
		{"with less", "npx -y @acme/*", run("npx", "-y"), false},
		{"with any more", "npx -y @acme/a *", run("npx", "-y", "@acme/a", "--x", "y"), true},
		{"with none of any more", "npx -y @acme/a *", run("npx", "-y", "@acme/a"), true},
		{"below a directory", "/opt/mcp/*", run("/opt/mcp/server"), true},
		{"out of a directory", "/opt/mcp/*", run("/opt/mcp/../../tmp/x"), false},
		{"spaces are part of a word", "npx -y", run("npx -y"), false},
		{"everything", "*", run("/tmp/x", "y"), true},
		{"a helper", "pass", helper("pass", "show"), true},
		{"a helper's line", "pass", helper("pass show x"), true},
		{"a line that does more", "pass", helper("pass show x; curl h"), false},
		{"a helper of another name", "pass", helper("curl h"), false},
		{"no command at all", "npx", messages.Spec{URL: "https://h"}, true},
	} {
		got := config.Policy{AllowCommands: []string{c.allow}, Source: "/etc/m.json"}.Refuses(c.spec)
		if (got == "") != c.want || got != "" && (!strings.Contains(got, "allowCommands") || !strings.Contains(got, "/etc/m.json")) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	for _, c := range []struct {
		deny string
		spec messages.Spec
		want bool // refused
	}{
		{"curl", run("curl"), true},
		{"curl", run("/usr/bin/curl", "x"), true},
		{"curl", with(run("curl"), "PATH"), true},
		{"curl", run("curly"), false},
		{"cur*", run("/x/curly"), true},
		{"/usr/bin/curl", run("/usr/bin/../bin/curl"), true},
		{"docker run --privileged *", run("docker", "run", "--privileged", "x"), true},
		{"docker run --privileged *", run("docker", "run", "x"), false},
		{"curl", helper("curl https://h"), true},
		{"*", run("x"), true},
	} {
		if got := (config.Policy{DenyCommands: []string{c.deny}, AllowCommands: []string{"*"}}).Refuses(c.spec); (got != "") != c.want {
			t.Errorf("%q: %+v: %q", c.deny, c.spec, got)
		}
	}
	if (config.Policy{AllowCommands: []string{}}).Refuses(run("x")) == "" {
		t.Error("an empty list that is there allows something")
	}
	if got := (config.Policy{}).Refuses(run("x")); got != "" || !(config.Policy{}).Empty() {
		t.Errorf("the zero policy refuses: %s", got)
	}
}

func TestPolicyOfURLs(t *testing.T) {
	for _, c := range []struct {
		pattern, url string
		allow, deny  bool // matches as a pattern of that list
	}{
		{"https://api.example.com/mcp", "https://api.example.com/mcp", true, true},
		{"https://api.example.com", "https://API.example.com./any?q=1", true, true},
		{"https://api.example.com", "http://api.example.com/", false, false},
		{"api.example.com", "http://api.example.com/", true, true},
		{"api.example.com", "https://api.example.com:8443/", false, true},
		{"api.example.com:*", "https://api.example.com:8443/", true, true},
		{"https://api.example.com", "https://api.example.com:443/", true, true},
		{"*.example.com", "https://a.b.example.com", true, true},
		{"*.example.com", "https://example.com", false, false},
		{"*.example.com", "https://evil.com/.example.com", false, false},
		{"*.example.com", "https://x@evil.com", false, false},
		{"*.example.com", "https://a.example.com@evil.com", false, false},
		{"*.example.com", "https://a.example.com.evil.com", false, false},
		{"example.com/mcp/*", "https://example.com/mcp/a/b", true, true},
		{"example.com/mcp/*", "https://example.com/admin", false, false},
		{"example.com/mcp/*", "https://example.com/mcp/../admin", false, true},
		{"example.com/admin", "https://example.com/mcp/../admin", false, true},
		{"example.com/admin*", "https://example.com/%61dmin", true, true},
		{"[::1]:8080", "http://[::1]:8080/mcp", true, true},
		{"*", "http://anything", true, true},
	} {
		spec := messages.Spec{URL: c.url}
		if got := (config.Policy{AllowURLs: []string{c.pattern}}).Refuses(spec); (got == "") != c.allow {
			t.Errorf("allow %s for %s: %q", c.pattern, c.url, got)
		}
		if got := (config.Policy{DenyURLs: []string{c.pattern}}).Refuses(spec); (got != "") != c.deny {
			t.Errorf("deny %s for %s: %q", c.pattern, c.url, got)
		}
	}
	spec := messages.Spec{URL: "https://ok.example", Auth: &messages.Auth{Type: "oauth", TokenURL: "https://evil.example/token"}}
	if got := (config.Policy{DenyURLs: []string{"evil.example"}}).Refuses(spec); !strings.Contains(got, "evil.example") {
		t.Errorf("the token endpoint is not looked at: %q", got)
	}
	if got := (config.Policy{AllowURLs: []string{"ok.example"}}).Refuses(spec); !strings.Contains(got, `"allowURLs": ["https://evil.example"]`) {
		t.Errorf("the token endpoint is allowed by an allow list without it: %q", got)
	}
	// All policies must agree.
	if config.Refusal(spec, config.Policy{AllowURLs: []string{"*"}}, config.Policy{DenyURLs: []string{"ok.example"}}) == "" {
		t.Error("one policy overrules another")
	}
}

// A managed file with a policy and no list of servers leaves the servers to the others; a policy that cannot be read
// allows nothing.
func TestManagedPolicy(t *testing.T) {
	parse := func(scope messages.Scope, text string) config.Parsed {
		return config.Parse(config.File{Path: "/etc/managed.json", Scope: scope, Data: []byte(text)})
	}
	user := config.Parse(config.File{Path: "u", Scope: messages.ScopeUser, Data: []byte(`{"servers":{"a":{"command":"x"}}}`)})
	merge := func(text string) config.Set {
		return config.Merge([]config.Parsed{parse(messages.ScopeManaged, text), user}, config.Context{})
	}
	set := merge(`{"policy": {"denyCommands": ["x"]}}`)
	if len(set.Policies) != 1 || config.Refusal(set.Specs["a"], set.Policies...) == "" || len(set.Specs) != 1 {
		t.Errorf("%+v", set)
	}
	if set := merge(`{"policy": {}, "servers": {}}`); len(set.Specs) != 0 {
		t.Errorf("an exclusive file leaves %v", set.Specs)
	}
	if set := merge(`{}`); len(set.Specs) != 0 {
		t.Errorf("a managed file without anything leaves %v", set.Specs)
	}
	for _, text := range []string{`{"policy": 1}`, `{"policy": {"denyCommand": ["x"]}}`, `{"policy": {"allowURLs": "x"}}`} {
		set := merge(text)
		if len(set.Problems) == 0 || config.Refusal(messages.Spec{Command: "y"}, set.Policies...) == "" {
			t.Errorf("%s: %v", text, set.Problems)
		}
	}
	p := parse(messages.ScopeUser, `{"policy": {"denyCommands": ["x"]}}`)
	if p.Policy != nil || len(p.Problems) != 1 || !p.Problems[0].Warning {
		t.Errorf("a policy of a person counts: %+v", p)
	}
}

// A pattern never matches what it must not however it is written, and nothing panics.
func FuzzPolicy(f *testing.F) {
	f.Add("npx -y *", "npx", "https://*.h/x*", "https://a.h/x")
	f.Add("/a/*", "/a/../b", "[::1]:*", "ws://[::1]:1")
	f.Add("**", "", "://", "")
	f.Fuzz(func(t *testing.T, command, program, pattern, url string) {
		s := messages.Spec{Command: program}
		allowed := config.Policy{AllowCommands: []string{command}}.Refuses(s) == ""
		denied := config.Policy{DenyCommands: []string{command}}.Refuses(s) != ""
		if program != "" && allowed && !denied {
			t.Errorf("%q allows %q and does not deny it", command, program)
		}
		r := messages.Spec{URL: url}
		_ = config.Policy{AllowURLs: []string{pattern}, DenyURLs: []string{pattern}}.Refuses(r)
	})
}
