package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// parseGateway returns what one file says about agents, and its problems.
func parseGateway(scope messages.Scope, text string) (*config.Gateway, string) {
	set := config.Merge([]config.Parsed{config.Parse(config.File{Path: "f.json", Scope: scope, Data: []byte(text)})},
		config.Context{HomeDir: "/home/ann"})
	var problems strings.Builder
	for _, p := range set.Problems {
		fmt.Fprintln(&problems, p.Error())
	}
	return set.Gateway, problems.String()
}

func TestGateway(t *testing.T) {
	g, problems := parseGateway(messages.ScopeUser, `{"gateway": {
		"listen": "0.0.0.0:8210", "prefix": "conflict", "tls": {"certFile": "/c.pem", "keyFile": "~/k.pem"},
		"views": {"docs": {"servers": ["files"], "default": "deny", "allow": ["mcp__files__read"], "prefix": "never"}},
		"principals": {"ann": {"view": "docs", "maxSessions": 3, "maxRequests": 2}},
		"tokens": {"laptop": {"principal": "ann", "file": "~/ann.token"}, "ann": {"fromEnv": "X"}, "ci": {"principal": "ann", "command": "pass show ci"}}}}`)
	if problems != "" || g.Invalid != "" {
		t.Fatalf("problems: %s%s", problems, g.Invalid)
	}
	if got := fmt.Sprint(g.Listen, g.Prefix, g.CertFile, g.KeyFile, g.Principals); got != "0.0.0.0:8210conflict/c.pem/home/ann/k.pemmap[ann:{docs 3 2}]" {
		t.Errorf("it is read as %s", got)
	}
	if got := fmt.Sprint(g.Tokens); got != "map[ann:{ann docs  X []} ci:{ann docs   [pass show ci]} laptop:{ann docs /home/ann/ann.token  []}]" {
		t.Errorf("the tokens are %s", got)
	}
	if v := g.Views["docs"]; fmt.Sprint(v.Servers, v.Prefix, v.Rules.Default, v.Rules.Rules) != "[files]neverdeny[allow mcp__files__read]" {
		t.Errorf("the view is %+v", v)
	}
}

// Each fault is named with its line and the nearest key, and makes the whole unusable: a misspelt restriction would let agents in.
func TestFaultsOfTheGateway(t *testing.T) {
	for text, want := range map[string]string{
		`{"view": {}}`:                                                                    `f.json:1:14: gateway.view: unknown key; did you mean views?`,
		`{"views": {"a": {"denny": ["x"]}}}`:                                              `f.json:1:30: gateway.views.a.denny: unknown key; did you mean deny?`,
		`{"views": {"a": {"ask": ["mcp__x"]}}}`:                                           `a view allows or denies, and asks nobody`,
		`{"views": {"a": {"default": "ask"}}}`:                                            `a view allows or denies, and asks nobody`,
		`{"views": {"a": {"deny": ["mcp_x"]}}}`:                                           `"mcp_x"`,
		`{"views": {"a": {"servers": "files"}}}`:                                          `found text instead of a list`,
		`{"views": {"a": {"prefix": "some"}}}`:                                            `unknown value "some"; write always, conflict, never`,
		`{"views": {"a/b": {}}}`:                                                          `is not made of letters, digits`,
		`{"views": {"..": {}}}`:                                                           `is not made of letters, digits`,
		`{"tokens": {"a": {"token": "S3CRET-S3CRET"}}}`:                                   `gateway.tokens.a.token: a token does not stand in a configuration file`,
		`{"tokens": {"a": {}}}`:                                                           `it needs one of file, fromEnv and command`,
		`{"tokens": {"a": {"file": "/f", "fromEnv": "E"}}}`:                               `it needs one of file, fromEnv and command`,
		`{"tokens": {"a": {"file": "f"}}}`:                                                `the path is not absolute`,
		`{"views": {"docs": {}}, "tokens": {"a": {"file": "/f", "view": "dosc"}}}`:        `gateway.tokens.a.view: there is no view "dosc"; did you mean docs?`,
		`{"principals": {"ann": {}}, "tokens": {"a": {"file": "/f", "principal": "an"}}}`: `there is no principal "an"; did you mean ann?`,
		`{"views": {"docs": {}}, "principals": {"ann": {"view": "dogs"}}}`:                `there is no view "dogs"; did you mean docs?`,
		`{"principals": {"ann": {"maxSessions": 0}}}`:                                     `it must be a whole number of at least 1`,
		`{"listen": "8210"}`:                                                              `"8210" is neither HOST:PORT nor unix:/PATH`,
		`{"listen": ":8210"}`:                                                             `other machines reach this address, and what agents send would be readable`,
		`{"listen": "[::]:8210", "tls": {"certFile": "/c", "keyFile": "/k"}}`:             `other machines reach this address, and nobody would be asked for a token`,
		`{"listen": "unix:x.sock"}`:                                                       `neither HOST:PORT nor unix:/PATH`,
		`{"tls": {"certFile": "/c"}}`:                                                     `a certificate and its private key need each other`,
		`{"tls": {"certFile": "/c", "keyfile": "/k"}}`:                                    `did you mean keyFile?`,
		`[]`: `found a list instead of an object`,
	} {
		g, problems := parseGateway(messages.ScopeUser, `{"gateway": `+text+`}`)
		if !strings.Contains(problems, want) || g == nil || g.Invalid == "" {
			t.Errorf("%s:\n%s(want %s)", text, problems, want)
		}
		if strings.Contains(problems, "S3CRET") {
			t.Errorf("a token is repeated: %s", problems)
		}
	}
	if g, problems := parseGateway(messages.ScopeUser, `{"gateway": {}, "gateway": {}}`); g.Invalid == "" || !strings.Contains(problems, "stands twice") {
		t.Errorf("twice: %s", problems)
	}
	if _, problems := parseGateway(messages.ScopeUser, `{"gatway": {}}`); !strings.Contains(problems, "did you mean gateway?") {
		t.Errorf("the key itself: %s", problems)
	}
}

// A file that merely lies in a project cannot let anybody in; the managed file wins over the person's.
func TestWhoseGatewayCounts(t *testing.T) {
	text := `{"gateway": {"tokens": {"a": {"file": "/f"}}}}`
	for _, scope := range []messages.Scope{messages.ScopeProject, messages.ScopeLocal} {
		if g, problems := parseGateway(scope, text); g != nil || !strings.Contains(problems, "a project file cannot say who uses the servers") {
			t.Errorf("%s: %v, %s", scope, g, problems)
		}
	}
	parse := func(path string, scope messages.Scope, listen string) config.Parsed {
		return config.Parse(config.File{Path: path, Scope: scope, Data: []byte(`{"gateway": {"listen": "` + listen + `"}}`)})
	}
	user, named := parse("u", messages.ScopeUser, "127.0.0.1:1"), parse("n", messages.ScopeDynamic, "127.0.0.1:2")
	managed := parse("m", messages.ScopeManaged, "127.0.0.1:3")
	for want, files := range map[string][]config.Parsed{"127.0.0.1:1": {user}, "127.0.0.1:2": {user, named}, "127.0.0.1:3": {managed, user, named}} {
		if got := config.Merge(files, config.Context{}).Gateway.Listen; got != want {
			t.Errorf("it is %s, not %s", got, want)
		}
	}
}
