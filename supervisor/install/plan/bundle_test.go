package plan_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

func bundled(t *testing.T, manifest string, m plan.Machine, fill plan.ValueSource, files ...string) (plan.Result, error) {
	t.Helper()
	read, err := plan.ReadManifest([]byte(manifest))
	if err != nil {
		return plan.Result{}, err
	}
	b := plan.Bundle{Dir: "/b", Manifest: read, Has: func(f string) bool { return slices.Contains(files, f) }}
	way := plan.Way{Kind: plan.MCPB, Package: &plan.Package{RegistryType: plan.MCPB, Transport: plan.Transport{Type: "stdio"}}}
	return plan.Build(way, fill, m, &b)
}

// TestABundleStartsWhatItsManifestSays, in the directory of the bundle.
func TestABundleStartsWhatItsManifestSays(t *testing.T) {
	typed := plan.ValueSource{Ask: func(in plan.Input) ([]string, error) {
		if in.Kind != plan.Setting || in.Name != "api_key" || !in.Secret {
			t.Errorf("asked for %+v", in)
		}
		return []string{"typed"}, nil
	}}
	windows := plan.Machine{OS: "windows", Home: "/home/ann"}
	for _, c := range []struct {
		name, manifest string
		m              plan.Machine
		fill           plan.ValueSource
		want           messages.Spec
	}{
		{"node", `{"server":{"type":"node","entry_point":"server/index.js","mcp_config":{"command":"node",
			"args":["${__dirname}/server/index.js","${user_config.dirs}","--at=${HOME}","${user_config.absent}"],
			"env":{"API_KEY":"${user_config.api_key}","ABSENT":"${user_config.absent}","MAX":"${user_config.max}"}}},
			"user_config":{"api_key":{"type":"string","sensitive":true,"required":true},"absent":{"type":"string"},
			"max":{"type":"number","default":10},"dirs":{"type":"directory","multiple":true,"required":true,"default":["${HOME}/Desktop","${DOCUMENTS}"]}}}`,
			everything, typed, messages.Spec{Type: messages.Stdio, Command: "node", Cwd: "/b",
				Args: []string{"/b/server/index.js", "/home/ann/Desktop", "/home/ann/Documents", "--at=/home/ann"},
				Env:  map[string]string{"API_KEY": "typed", "MAX": "10"}}},
		{"a setting of several values that was given", `{"server":{"type":"node","entry_point":"i.js","mcp_config":{"command":"node","args":["i.js","${user_config.dirs}"]}},
			"user_config":{"dirs":{"type":"directory","multiple":true,"required":true,"default":["/a","/b"]}}}`,
			everything, plan.ValueSource{GivenValues: plan.GivenValues{Args: map[string][]string{"dirs": {"/x", "${HOME}/y"}}}},
			messages.Spec{Type: messages.Stdio, Command: "node", Cwd: "/b", Args: []string{"i.js", "/x", "${HOME}/y"}}},
		{"no command", `{"server":{"type":"python","entry_point":"main.py"}}`, everything, plan.ValueSource{},
			messages.Spec{Type: messages.Stdio, Command: "python3", Cwd: "/b", Args: []string{"/b/main.py"}}},
		{"python is called python3 here", `{"server":{"type":"python","entry_point":"main.py","mcp_config":{"command":"python","args":["main.py"]}}}`,
			only("python3"), plan.ValueSource{}, messages.Spec{Type: messages.Stdio, Command: "python3", Cwd: "/b", Args: []string{"main.py"}}},
		{"uv", `{"server":{"type":"uv","entry_point":"src/server.py"}}`, everything, plan.ValueSource{},
			messages.Spec{Type: messages.Stdio, Command: "uv", Cwd: "/b", Args: []string{"run", "--directory", "/b", "src/server.py"}}},
		{"a program", `{"server":{"type":"binary","entry_point":"bin/x","mcp_config":{"command":"bin/x","args":["-v"],
			"platform_overrides":{"win32":{"command":"bin/y","env":{"W":"1"}}}}}}`, everything, plan.ValueSource{},
			messages.Spec{Type: messages.Stdio, Command: "/b/bin/x", Cwd: "/b", Args: []string{"-v"}}},
		{"a program of another system", `{"server":{"type":"binary","entry_point":"bin/x","mcp_config":{"command":"bin/x","args":["-v"],
			"platform_overrides":{"win32":{"command":"bin/y","env":{"W":"1"}}}}}}`, windows, plan.ValueSource{},
			messages.Spec{Type: messages.Stdio, Command: "/b/bin/y.exe", Cwd: "/b", Args: []string{"-v"}, Env: map[string]string{"W": "1"}}},
	} {
		got, err := bundled(t, c.manifest, c.m, c.fill, "bin/x", "bin/y.exe", "server/index.js")
		if err != nil || !reflect.DeepEqual(got.Spec, c.want) {
			t.Errorf("%s:\n%+v\n%v, want\n%+v", c.name, got.Spec, err, c.want)
		}
	}
}

func TestABundleIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		manifest, text string
		cause          error
	}{
		"no JSON":         {`<html>`, "manifest.json cannot be read", plan.ErrDocument},
		"nothing":         {`{}`, "does not say how to start it", plan.ErrDocument},
		"another system":  {`{"server":{"entry_point":"x"},"compatibility":{"platforms":["win32"]}}`, "runs on win32 and not on linux", plan.ErrUnusable},
		"a way out":       {`{"server":{"type":"binary","entry_point":"../../bin/sh"}}`, "which is no file of it", plan.ErrUnusable},
		"another's":       {`{"server":{"entry_point":"x","mcp_config":{"command":"/bin/sh"}}}`, "which is no file of it", plan.ErrUnusable},
		"absent":          {`{"server":{"entry_point":"x","mcp_config":{"command":"${__dirname}/y"}}}`, "which is no file of it", plan.ErrUnusable},
		"our environment": {`{"server":{"entry_point":"x","mcp_config":{"command":"node","args":["${AWS_SECRET_ACCESS_KEY}"]}}}`, "none of its settings", plan.ErrUnusable},
		"not closed":      {`{"server":{"entry_point":"x","mcp_config":{"command":"node","args":["${x"]}}}`, "not closed", plan.ErrUnusable},
		"a default": {`{"server":{"entry_point":"x","mcp_config":{"command":"node","args":["${user_config.a}"]}},"user_config":{"a":{"type":"string","default":"${AWS}"}}}`,
			`holds "${"`, plan.ErrUnusable},
		"two halves": {`{"server":{"entry_point":"x","mcp_config":{"command":"node","args":["$${user_config.a}"]}},"user_config":{"a":{"type":"string","default":"{AWS}"}}}`,
			`holds "${"`, plan.ErrUnusable},
		"missing": {`{"server":{"entry_point":"x","mcp_config":{"command":"node","args":["${user_config.a}"]}},"user_config":{"a":{"type":"string","required":true}}}`,
			"the setting a is required; give it with --arg a=…", plan.ErrMissing},
	} {
		if got, err := bundled(t, c.manifest, everything, plan.ValueSource{}); !errors.Is(err, c.cause) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %+v, %v", name, got.Spec, err)
		}
	}
}
