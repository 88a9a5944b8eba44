package config_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// withVariables returns the set with one entry whose variables are read from a file with this content.
func withVariables(content string) config.Set {
	p := config.Parse(config.File{Path: "f", Scope: messages.ScopeUser,
		Data: []byte(`{"mcpServers": {"s": {"command": "x", "envFile": "/v", "env": {"OWN": "own"}}}}`)})
	return config.Merge([]config.Parsed{p}, config.Context{ReadFile: func(string) ([]byte, string) { return []byte(content), "" }})
}

// What people write into files of variables is read as they mean it.
func TestVariablesOfAFile(t *testing.T) {
	for _, row := range []struct {
		text string
		want map[string]string
	}{
		{"", nil},
		{"# nothing\n\n  # more\n", nil},
		{"A=1\nB=two words\n", map[string]string{"A": "1", "B": "two words"}},
		{"\ufeffA=1\r\nB=2", map[string]string{"A": "1", "B": "2"}},
		{"export A=1\n A = 2 \n", map[string]string{"A": "2"}},
		{"A=\nB=#x\nC=a#b\nD=a # b\nE= # b\n", map[string]string{"A": "", "B": "", "C": "a#b", "D": "a", "E": ""}},
		{`A="1 # 2" # three`, map[string]string{"A": "1 # 2"}},
		{`A='a\nb"$X'`, map[string]string{"A": `a\nb"$X`}},
		{`A="a\nb\"\\\$\q"`, map[string]string{"A": "a\nb\"\\$\\q"}},
		{"A=\"a\nb\"\nB=1", map[string]string{"A": "a\nb", "B": "1"}},
		{"A=it's\nB=${A}", map[string]string{"A": "it's", "B": "${A}"}},
		{"OWN=other\nA=1", map[string]string{"A": "1"}},
	} {
		set := withVariables(row.text)
		want := map[string]string{"OWN": "own"}
		maps.Copy(want, row.want)
		if got := set.Specs["s"]; !maps.Equal(got.Env, want) || got.Invalid != "" {
			t.Errorf("%q: %q, %s", row.text, got.Env, got.Invalid)
		}
	}
}

// What is no such line costs the server, with the number of the line and nothing of its text.
func TestVariablesThatCannotBeRead(t *testing.T) {
	for text, line := range map[string]string{
		"A=1\ncanary\n": "line 2", "=canary": "line 1", "A=\"canary\n\n": "line 1", "A='canary' x": "line 1", "A B=canary": "line 1",
		"A=1\nB=\"x\ny\"\n\ncanary": "line 5", "A=canary\x00": "line 1",
	} {
		set := withVariables(text)
		if len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Text, line+" of the file of variables") ||
			strings.Contains(set.Problems[0].Error(), "canary") || set.Specs["s"].Invalid == "" {
			t.Errorf("%q: %v", text, set.Problems)
		}
	}
}

// Any bytes are variables or a fault.
func FuzzVariables(f *testing.F) {
	for _, s := range []string{"A=1", "A=\"x\\", "export A='", "\ufeff#\r\nA=b # c", "A=\"\n\n", "A B=1", "=", "\x00=\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set := withVariables(text)
		spec := set.Specs["s"]
		if (spec.Invalid == "") != (len(set.Problems) == 0) || spec.Env["OWN"] != "own" {
			t.Fatalf("%+v, %v", spec, set.Problems)
		}
		for name, value := range spec.Env {
			if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
				t.Fatalf("%q=%q", name, value)
			}
		}
	})
}

// What a file of a project says cannot change which code runs, in whatever case it is written.
func TestVariablesOfAProjectThatSteer(t *testing.T) {
	const steering = "Npm_Config_Registry _JAVA_OPTIONS OPENSSL_CONF HOME XDG_CONFIG_HOME HTTPS_PROXY NODE_EXTRA_CA_CERTS PYTHONUSERBASE " +
		"PERL5DB BUN_CONFIG_REGISTRY CORECLR_PROFILER_PATH DOCKER_CONFIG GOTOOLCHAIN MCPVISOR_PASSPHRASE LD_AUDIT Path"
	text := "API_KEY=1\nLANG=C\n" + strings.Join(strings.Fields(steering), "=x\n") + "=x\n"
	p := config.Parse(config.File{Path: "f", Scope: messages.ScopeProject, Data: []byte(`{"mcpServers": {"s": {"command": "x", "envFile": ".env"}}}`)})
	set := config.Merge([]config.Parsed{p}, config.Context{ReadFile: func(string) ([]byte, string) { return []byte(text), "" }})
	if got := set.Specs["s"].Env; !maps.Equal(got, map[string]string{"API_KEY": "1", "LANG": "C"}) {
		t.Errorf("the server gets %q", got)
	}
	if len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Text, "LD_AUDIT") {
		t.Errorf("%v", set.Problems)
	}
}

// The person's own file may name a file of the project by a way around: what lies in the project is its author's, by whatever path.
func TestAnEnvFileOfTheProjectIsKnownByAnyPath(t *testing.T) {
	for _, path := range []string{"/home/p/proj/.env", "/home/p/x/../proj/.env", "/home/p//proj/./.env", "../proj/.env"} {
		p := config.Parse(config.File{Path: "f", Scope: messages.ScopeUser, Data: fmt.Appendf(nil, `{"mcpServers": {"s": {"command": "x", "envFile": %q}}}`, path)})
		set := config.Merge([]config.Parsed{p}, config.Context{ProjectDir: "/home/p/proj", ReadFile: func(string) ([]byte, string) {
			return []byte("API_KEY=1\nLD_PRELOAD=x\n"), ""
		}})
		if got := set.Specs["s"].Env; !maps.Equal(got, map[string]string{"API_KEY": "1"}) {
			t.Errorf("%s: the server gets %q", path, got)
		}
	}
}
