package foreign_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
)

// Text that nests without end, or unfolds to more than the memory holds, is refused with a place.
func TestBounds(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 8), ", "))
	}
	for name, data := range map[string]string{
		"bomb.yaml": bomb, "deep.yaml": "extensions: " + strings.Repeat("[", 100000), "dashes.yaml": strings.Repeat("- ", 100000),
		"deep.toml": "a = " + strings.Repeat("[", 100000), "deep.json": strings.Repeat(`{"a":`, 100000),
		"large.toml": "[mcp_servers.a]\ncommand = '" + strings.Repeat("x", config.MaxFile) + "'",
		"keys.toml":  "[a]\n" + strings.Repeat("k = 1\n", 10000), "parts.toml": strings.Repeat("a.", 1000) + "b = 1",
		"keys.yaml": strings.Repeat("a: 1\n", 10000), "documents.yaml": strings.Repeat("---\na: 1\n", 100),
		"utf16.yaml": "\xff\xfea\x00", "bytes.toml": "a = '\xff'",
	} {
		p := foreign.Parse(config.File{Path: name, Scope: messages.ScopeUser, Data: []byte(data)}, foreign.Context{})
		if !p.Broken || len(p.Problems) != 1 || p.Problems[0].Line < 1 {
			t.Errorf("%s: %+v", name, p.Problems)
		}
	}
}

// A list of variables costs by its length, and is bounded.
func TestAListOfVariablesIsBounded(t *testing.T) {
	var names strings.Builder
	for i := range config.MaxList + 10 {
		fmt.Fprintf(&names, "'a%d', 'a%[1]d', ", i)
	}
	data := "[mcp_servers.a]\ncommand = 'x'\nenv = { a1 = 'own' }\nenv_vars = [" + names.String() + "]\n"
	p := foreign.Parse(config.File{Path: "config.toml", Scope: messages.ScopeUser, Data: []byte(data)}, foreign.Context{})
	if s := p.Servers["a"].Spec; !strings.Contains(s.Invalid, "longer than can be read") || len(s.Env) != config.MaxList/2 || s.Env["a1"] != "own" {
		t.Errorf("%d variables, %q, %q", len(s.Env), s.Invalid, s.Env["a1"])
	}
}

// No value of an entry reaches a problem, in whatever form it stands, right or wrong.
func TestNoSecretIsTold(t *testing.T) {
	const canary = "kanarienvogel"
	for name, data := range map[string]string{
		"config.toml": `
[mcp_servers.a]
command = "x"
args = ["--token", "canary", 5, "${A}canary"]
env = { K = "canary", L = "${A}canary", M = 1 }
env_vars = ["canary!", { name = "canary!" }]
tool_timeout_sec = "canary"
[mcp_servers.b]
url = "canary://u:canary@h/canary"
http_headers = { A = "canary\n", B = "$canary" }
env_http_headers = { C = "canary!" }
bearer_token = "canary"
auth = "canary"
[mcp_servers.c]
url = "https://h"
bearer_token_env_var = "$canary!"
`,
		"syntax.toml":   "[mcp_servers.a]\nenv = { K = \"canary\" \"canary\" }\ncommand = canary",
		"twice.toml":    "[a]\nk = 'canary'\nk = 'canary'\n",
		"config.yaml":   "extensions:\n  a:\n    type: stdio\n    cmd: x\n    envs: {K: 'canary', L: '${A}canary'}\n    env_keys: ['canary!']\n    args: canary\n",
		"syntax.yaml":   "extensions:\n  a:\n    cmd: 'canary\n    envs: {K: canary\n",
		"tab.yaml":      "extensions:\n  a:\n\tcanary: canary\n",
		"opencode.json": `{"mcp": {"a": {"type": "local", "command": ["x", "{file:canary}", "{env:canary!}"], "environment": {"K": "canary{env:A}"}, "timeout": true}}}`,
		"settings.json": `{"context_servers": {"a": {"command": {"path": "x", "args": "canary", "env": {"K": ["canary"]}}, "settings": {"k": "canary"}}}}`,
		"mcp.json": `{"inputs": [{"id": "i", "default": "canary"}], "servers": {"a": {"type": "http", "url": "https://canary:canary@${input:i}/canary",
			"headers": {"A": "${file:canary}", "B": "canary${input:i}"}, "envFile": "canary"}}}`,
	} {
		data = strings.ReplaceAll(data, "canary", canary)
		p := foreign.Parse(config.File{Path: name, Scope: messages.ScopeUser, Data: []byte(data)}, foreign.Context{})
		set := config.Merge([]config.Parsed{p}, config.Context{Lookup: func(string) (string, bool) { return canary, true }})
		if len(set.Problems) == 0 {
			t.Errorf("%s: nothing is wrong with it", name)
		}
		for _, problem := range set.Problems {
			said := strings.ReplaceAll(problem.Error(), "$"+canary, "") // the name of a variable
			if strings.Contains(strings.ReplaceAll(said, "${"+canary+"}", ""), canary) {
				t.Errorf("%s: %s", name, problem.Error())
			}
		}
	}
}
