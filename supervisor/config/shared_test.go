package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// TestWhatProjectsShare says of each entry whether the user's manager has it, or the project: by the values of variables, the project's
// folder, the scope, and what a project says about it.
func TestWhatProjectsShare(t *testing.T) {
	user := config.Parse(config.File{Path: "/home/u/mcp.json", Scope: messages.ScopeUser, Data: []byte(`{"mcpServers": {
		"plain": {"command": "x"},
		"same": {"command": "x", "env": {"A": "${SAME}"}},
		"other": {"command": "x", "env": {"A": "${OTHER:-none}"}},
		"unset": {"command": "x", "env": {"A": "${UNSET}"}},
		"folder": {"command": "x", "args": ["${workspaceFolder}"]},
		"claude": {"command": "x", "args": ["${CLAUDE_PROJECT_DIR}"]},
		"token": {"url": "https://a.example", "auth": {"type": "bearer", "fromEnv": "OTHER"}},
		"token2": {"url": "https://a.example", "auth": {"type": "bearer", "fromEnv": "SAME"}},
		"found": {"command": "found"},
		"path": {"command": "found", "env": {"PATH": "/bin"}},
		"file": {"command": "/usr/bin/found"},
		"hidden": {"command": "x"},
		"off": {"command": "x"}}}`)})
	project := config.Parse(config.File{Path: "/p/.mcpvisor/mcp.local.json", Scope: messages.ScopeLocal, Dir: "/p", Data: []byte(
		`{"mcpServers": {"hidden": {"command": "y"}, "own": {"command": "x"}}, "disabledServers": ["off"]}`)})
	for _, p := range []config.Parsed{user, project} {
		if len(p.Problems) > 0 {
			t.Fatal(p.Problems)
		}
	}
	lookup := func(values string) func(string) (string, bool) {
		return func(name string) (string, bool) {
			for pair := range strings.FieldsSeq(values) {
				if v, ok := strings.CutPrefix(pair, name+"="); ok {
					return v, true
				}
			}
			return "", false
		}
	}
	found := func(dir string) func(string) string {
		return func(command string) string {
			if command == "found" {
				return dir + command
			}
			return "/bin/" + command
		}
	}
	here := config.Context{Lookup: lookup("SAME=1 OTHER=here"), ProjectDir: "/p", Program: found("/here/")}
	there := config.Context{Lookup: lookup("SAME=1 OTHER=there"), Program: found("/there/")}
	files := []config.Parsed{user, project}

	own := config.Merge(files, here).Specs
	config.OmitShared(files, own, here, there)
	if got, want := strings.Join(slices.Sorted(maps.Keys(own)), " "), "claude folder found hidden off other own token"; got != want {
		t.Errorf("the project has %s, want %s", got, want)
	}
	shared := config.Merge([]config.Parsed{user}, there).Specs
	config.OmitProjectBound([]config.Parsed{user}, shared, there)
	if got, want := strings.Join(slices.Sorted(maps.Keys(shared)), " "), "file found hidden off other path plain same token token2 unset"; got != want {
		t.Errorf("the user's manager has %s, want %s", got, want)
	}
	// Every server is in one of them.
	for name := range config.Merge(files, here).Specs {
		if _, ok := shared[name]; !ok {
			if _, ok := own[name]; !ok {
				t.Errorf("nobody has %s", name)
			}
		}
	}
	for name, want := range map[string]string{"plain": "", "other": "OTHER", "token": "OTHER", "folder": "", "claude": "CLAUDE_PROJECT_DIR"} {
		if got := strings.Join(config.VariablesOf(user, name, here), " "); got != want {
			t.Errorf("%s mentions %q, want %q", name, got, want)
		}
	}
}
