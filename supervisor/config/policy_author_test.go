package config_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// The example of the README holds against an author who writes whole configurations.
func TestAllowedCommandsAgainstADeterminedAuthor(t *testing.T) {
	p := config.Policy{AllowCommands: []string{"npx -y @acme/*", "/opt/mcp/*"}}
	run := func(words ...string) messages.Spec { return messages.Spec{Command: words[0], Args: words[1:]} }
	npx := func(what string) messages.Spec { return run("npx", "-y", what) }
	env := func(s messages.Spec, name, value string) messages.Spec {
		s.Env = map[string]string{name: value}
		return s
	}
	yes := true
	for name, s := range map[string]messages.Spec{
		"a tarball":                 npx("@acme/server@https://elsewhere.example/x.tgz"),
		"a folder":                  npx("@acme/server@file:/tmp/evil"),
		"a folder without a scheme": npx("@acme/server@../evil"),
		"another package":           npx("@acme/server@npm:evil"),
		"a repository":              npx("@acme/server@github:evil/x"),
		"a version":                 npx("@acme/server@1.0.0"),
		"a way out of the scope":    npx("@acme/../evil"),
		"a path below the scope":    npx("@acme/x/../../evil"),
		"a dot":                     npx("@acme/."),
		"a second line":             npx("@acme/x\nevil"),
		"signs of a shell":          npx("@acme/x\"&calc"),
		"another argument":          run("npx", "-y", "@acme/x", "--call", "evil"),
		"an argument before":        run("npx", "--package=evil", "-y", "@acme/x"),
		"another registry":          env(npx("@acme/x"), "npm_config_registry", "https://elsewhere.example"),
		"another registry's case":   env(npx("@acme/x"), "Npm_Config_Registry", "https://elsewhere.example"),
		"code in a variable":        env(npx("@acme/x"), "NODE_OPTIONS", "--import=data:x"),
		"another home":              env(npx("@acme/x"), "HOME", "/tmp/evil"),
		"a variable of its own":     env(npx("@acme/x"), "ACME_PLUGIN", "/tmp/evil"),
		"two variables in a name":   env(npx("@acme/x"), "LANG=x", "y"),
		"a catalog elsewhere":       env(npx("@acme/x"), "LANG", "../../tmp/x"),
		"audit of the loader":       env(run("/opt/mcp/server"), "LD_AUDIT", "/tmp/x.so"),
		"a shell's file":            env(run("/opt/mcp/server"), "BASH_ENV", "/tmp/x"),
		"another folder":            {Command: "npx", Args: []string{"-y", "@acme/x"}, Cwd: "/tmp/evil"},
		"the whole environment":     {Command: "npx", Args: []string{"-y", "@acme/x"}, InheritEnv: &yes},
		"a way out":                 run("/opt/mcp/../../bin/sh", "-c", "id"),
		"further down":              run("/opt/mcp/bin/sh"),
		"npx elsewhere":             run("/tmp/npx", "-y", "@acme/x"),
		"npx here":                  run("./npx", "-y", "@acme/x"),
		"a helper in this folder": {URL: "https://h/mcp", Auth: &messages.Auth{Type: messages.AuthHelper, Command: "npx",
			Args: []string{"-y", "@acme/x"}}},
		"a helper with a variable": {URL: "https://h/mcp", Auth: &messages.Auth{Type: messages.AuthHelper, Command: "/opt/mcp/token",
			Args: []string{}, Env: map[string]string{"LD_PRELOAD": "x"}}},
	} {
		if p.Refuses(s) == "" {
			t.Errorf("%s is allowed: %+v", name, s)
		}
	}
	for name, s := range map[string]messages.Spec{
		"the package": npx("@acme/x"), "a program": run("/opt/mcp/server", "--any"), "a helper": {URL: "https://h/mcp",
			Auth: &messages.Auth{Type: messages.AuthHelper, Command: "/opt/mcp/token", Args: []string{"x"}}},
		"what is logged": env(npx("@acme/x"), "LOG_LEVEL", "debug"), "a language": env(npx("@acme/x"), "LC_ALL", "de_DE.UTF-8"),
	} {
		if rule := p.Refuses(s); rule != "" {
			t.Errorf("%s is refused: %s", name, rule)
		}
	}
}

// Each refusal has the line that lifts it.
func TestRefusalsSayWhatWouldAllow(t *testing.T) {
	dir, yes := filepath.Join(t.TempDir(), "work"), true
	base := config.Policy{AllowCommands: []string{"npx -y @acme/*"}, AllowURLs: []string{"https://ok.example"}}
	npx := messages.Spec{Command: "npx", Args: []string{"-y", "@acme/x"}}
	with := func(change func(*messages.Spec)) messages.Spec { s := npx; change(&s); return s }
	auth := func(a messages.Auth) messages.Spec { return messages.Spec{URL: "https://ok.example/mcp", Auth: &a} }
	for name, s := range map[string]messages.Spec{
		"another program": {Command: "uvx", Args: []string{"acme-x==1.0", "--root", "/data"}},
		"a version":       {Command: "npx", Args: []string{"-y", "@acme/x@1.0.0"}},
		"a secret":        {Command: "acme", Args: []string{"--token", "abcdef-abcdef", "x"}},
		"a space":         {Command: "acme", Args: []string{"two words", "x"}},
		"a variable":      with(func(s *messages.Spec) { s.Env = map[string]string{"API_KEY": "x"} }),
		"code":            with(func(s *messages.Spec) { s.Env = map[string]string{"Node_Options": "x"} }),
		"a directory":     with(func(s *messages.Spec) { s.Cwd = dir }),
		"everything":      with(func(s *messages.Spec) { s.InheritEnv = &yes }),
		"a proxy":         with(func(s *messages.Spec) { s.Env = map[string]string{"https_proxy": "proxy.example:3128"} }),
		"a token URL":     auth(messages.Auth{Type: "oauth", TokenURL: "https://elsewhere.example/t"}),
		"an issuer":       auth(messages.Auth{Type: "oauth", Issuer: "https://elsewhere.example/"}),
		"an auth URL":     auth(messages.Auth{Type: "oauth", AuthURL: "https://elsewhere.example/", TokenURL: "https://ok.example/t"}),
		"a client":        auth(messages.Auth{Type: "oauth", ClientMetadataURL: "https://elsewhere.example/c.json"}),
		"a redirect":      auth(messages.Auth{Type: "oauth", RedirectURL: "https://elsewhere.example/cb"}),
		"a resource":      auth(messages.Auth{Type: "oauth", Resource: "https://elsewhere.example:8443/mcp"}),
		"a server":        {URL: "http://elsewhere.example:8080/mcp?key=abcdef"},
	} {
		p := base
		for range 3 {
			rule := p.Refuses(s)
			if rule == "" {
				break
			}
			m := regexp.MustCompile(`; to allow it: "(\w+)": \["(.*)"\]$`).FindStringSubmatch(rule)
			if m == nil || strings.Contains(rule, "abcdef") {
				t.Errorf("%s: %s", name, rule)
				break
			}
			list := map[string]*[]string{"allowCommands": &p.AllowCommands, "allowEnv": &p.AllowEnv, "allowCwd": &p.AllowCwd, "allowURLs": &p.AllowURLs}[m[1]]
			*list = append(*list, strings.ReplaceAll(m[2], `\\`, `\`))
		}
		if rule := p.Refuses(s); rule != "" {
			t.Errorf("%s: the lines do not allow it: %s", name, rule)
		}
		if base.Refuses(s) == "" {
			t.Errorf("%s is allowed", name)
		}
	}
	local := auth(messages.Auth{Type: "oauth", RedirectURL: "http://127.0.0.1:8080/callback", Resource: "api://x"})
	if rule := base.Refuses(local); rule != "" {
		t.Error(rule)
	}
}

// A star in the names of variables allows none that steers; what stands as it is does.
func TestAllowedVariablesAndDirectories(t *testing.T) {
	p := config.Policy{AllowCommands: []string{"acme"}, AllowEnv: []string{"*", "HTTPS_PROXY"}, AllowCwd: []string{"/srv/*", "/data/**"}}
	if filepath.Separator == '\\' {
		p.AllowCwd = nil
	}
	for name, want := range map[string]bool{"API_KEY": true, "https_proxy": true, "NODE_OPTIONS": false, "PATH": false, "Http_Proxy": false} {
		if rule := p.Refuses(messages.Spec{Command: "acme", Env: map[string]string{name: "x"}}); (rule == "") != want {
			t.Errorf("%s: %s", name, rule)
		}
	}
	p.AllowEnv = []string{"**"}
	if rule := p.Refuses(messages.Spec{Command: "acme", Env: map[string]string{"PATH": "x"}}); rule != "" {
		t.Error(rule)
	}
	for dir, want := range map[string]bool{"/srv/a": true, "/srv/a/b": false, "/srv/.git": false, "/srv/a/..": false, "/data/a/b": true, "data": false, "/": false} {
		if got := p.AllowsDirectory(dir); got != want && p.AllowCwd != nil {
			t.Errorf("%s: %v", dir, got)
		}
	}
	if rule := (config.Policy{AllowCommands: []string{"*"}}).Refuses(messages.Spec{Command: "x", Cwd: "/tmp", Env: map[string]string{"PATH": "x"}}); rule != "" {
		t.Error("a policy that allows every command bounds it: " + rule)
	}
}

// Under a list of allowed commands, a server whose entry names no directory starts where no stranger has put packages.
func TestPolicyChoosesTheDirectory(t *testing.T) {
	home, project := filepath.Join(t.TempDir(), "home"), filepath.Join(t.TempDir(), "project")
	cwd := func(policy, entry string) string {
		managed := config.Parse(config.File{Path: "m", Scope: messages.ScopeManaged, Data: []byte(`{"policy": ` + policy + `}`)})
		found := config.Parse(config.File{Path: "p", Scope: messages.ScopeProject, Dir: project, Data: []byte(`{"mcpServers": {"s": ` + entry + `}}`)})
		set := config.Merge([]config.Parsed{managed, found}, config.Context{HomeDir: home, ProjectDir: project})
		if rule := config.Refusal(set.Specs["s"], set.Policies...); rule != "" {
			return rule
		}
		return set.Specs["s"].Cwd
	}
	slash := filepath.ToSlash(project)
	if got := cwd(`{"allowCommands": ["npx -y @acme/*"]}`, `{"command": "npx", "args": ["-y", "@acme/x"]}`); got != home {
		t.Errorf("it starts in %s", got)
	}
	if got := cwd(`{"allowCommands": ["npx"], "allowCwd": ["`+slash+`"]}`, `{"command": "npx"}`); got != project {
		t.Errorf("it starts in %s", got)
	}
	if got := cwd(`{"allowCommands": ["npx"]}`, `{"command": "npx", "cwd": "."}`); !strings.Contains(got, "does not allow the directory") {
		t.Errorf("it starts in %s", got)
	}
	if got := cwd(`{"denyCommands": ["npx"]}`, `{"command": "x"}`); got == home {
		t.Error("a deny list chooses a directory")
	}
}
