package foreign_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
)

// TestEveryProgramsEntryIsReadBack checks that the reader of each program finds what StdioEntryFor writes, without a problem.
func TestEveryProgramsEntryIsReadBack(t *testing.T) {
	for _, f := range foreign.Formats {
		env := map[string]string{"XDG_STATE_HOME": "/a b", "B": "c"}
		e := foreign.StdioEntryFor(f, config.File{}, "mine", "/bin/x y", []string{"connect", "-v"}, env)
		if f.Syntax() != "JSON" {
			continue // the golden files of the command clients have them
		}
		text := string(e.Value)
		for _, key := range slices.Backward(e.Path) {
			text = `{"` + key + `": ` + text + `}`
		}
		p := foreign.Parse(config.File{Path: "f.json", Scope: messages.ScopeUser, Data: []byte(text)}, foreign.Context{Format: f})
		spec := p.Servers["mine"].Spec
		if spec.Command != "/bin/x y" || !slices.Equal(spec.Args, []string{"connect", "-v"}) || spec.Disabled || !maps.Equal(spec.Env, env) || len(p.Problems) > 0 {
			t.Errorf("%s: %s: %+v, %v", f, text, spec, p.Problems)
		}
	}
}

// TestOpencodeKeepsItsForm checks that a file with servers one level deeper gets an entry there.
func TestOpencodeKeepsItsForm(t *testing.T) {
	for text, want := range map[string]string{"": "mcp.mine", `{"mcp": {"a": {"type": "local"}}}`: "mcp.mine", `{"mcp": {"servers": {}}}`: "mcp.servers.mine",
		`{"mcp": {"servers": {"type": "local", "command": ["x"]}}}`: "mcp.mine"} {
		e := foreign.StdioEntryFor(foreign.OpenCode, config.File{Path: "opencode.json", Data: []byte(text)}, "mine", "x", nil, nil)
		if strings.Join(e.Path, ".") != want {
			t.Errorf("%s: %v", text, e.Path)
		}
	}
}
