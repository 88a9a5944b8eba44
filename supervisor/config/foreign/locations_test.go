package foreign_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
)

// The files of each program are looked for where its own documentation puts them on each system, and where its variables move them.
func TestPlaces(t *testing.T) {
	unset := func(string) (string, bool) { return "", false }
	moved := func(name string) (string, bool) {
		v, ok := map[string]string{"XDG_CONFIG_HOME": "/x", "CODEX_HOME": "/c", "CLAUDE_CONFIG_DIR": "/l",
			"APPDATA": `D:\Roaming`}[name]
		return v, ok
	}
	for _, row := range []struct {
		m    foreign.Machine
		want map[foreign.Format]string
	}{
		{foreign.Machine{OS: "linux", Home: "/h", Lookup: unset}, map[foreign.Format]string{
			foreign.ClaudeCode: "/h/.claude.json", foreign.ClaudeDesktop: "/h/.config/Claude/claude_desktop_config.json",
			foreign.VSCode: "/h/.config/Code/User/mcp.json", foreign.Goose: "/h/.config/goose/config.yaml",
			foreign.Roo: "/h/.config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"}},
		{foreign.Machine{OS: "linux", Home: "/h", Lookup: moved}, map[foreign.Format]string{
			foreign.ClaudeCode: "/l/.claude.json", foreign.Codex: "/c/config.toml", foreign.Zed: "/x/zed/settings.json",
			foreign.OpenCode: "/x/opencode/opencode.json"}},
		{foreign.Machine{OS: "darwin", Home: "/Users/p"}, map[foreign.Format]string{
			foreign.ClaudeDesktop: "/Users/p/Library/Application Support/Claude/claude_desktop_config.json",
			foreign.Zed:           "/Users/p/.config/zed/settings.json"}},
		{foreign.Machine{OS: "windows", Home: `C:\Users\p`, Lookup: moved}, map[foreign.Format]string{
			foreign.ClaudeDesktop: "D:/Roaming/Claude/claude_desktop_config.json", foreign.Cursor: "C:/Users/p/.cursor/mcp.json",
			foreign.Goose: "D:/Roaming/Block/goose/config/config.yaml", foreign.Zed: "D:/Roaming/Zed/settings.json"}},
		{foreign.Machine{OS: "linux", Dir: "/w"}, map[foreign.Format]string{
			foreign.VSCode: "/w/.vscode/mcp.json", foreign.Copilot: "/w/.github/mcp.json", foreign.Kiro: "/w/.kiro/settings/mcp.json"}},
	} {
		places := foreign.Locations(row.m)
		for format, want := range row.want {
			if !slices.ContainsFunc(places, func(p foreign.Location) bool { return p.Format == format && p.Path == want }) {
				t.Errorf("%s: %s has no %s", row.m.OS, format, want)
			}
		}
		for _, p := range places {
			if p.Project != strings.HasPrefix(p.Path, "/w/") {
				t.Errorf("%+v", p)
			}
		}
	}
	if got := foreign.Locations(foreign.Machine{OS: "linux"}); len(got) != 0 {
		t.Errorf("a machine without a home has %v", got)
	}
}

// Every program has a place, and a file that lies there is recognised as its own. Settings that only name a program's
// extension, and mcp.json of no known folder, are told by their content instead.
func TestEveryPlaceIsRecognised(t *testing.T) {
	seen := map[foreign.Format]bool{}
	for _, p := range foreign.Locations(foreign.Machine{OS: "linux", Home: "/h", Dir: "/w"}) {
		seen[p.Format] = true
		data := `{"mcpServers": {"a": {"command": "x"}}}`
		switch {
		case strings.HasSuffix(p.Path, ".toml"):
			data = "[mcp_servers.a]\ncommand = 'x'\n"
		case strings.HasSuffix(p.Path, ".yaml"):
			data = "extensions:\n  a: {type: stdio, cmd: x}\n"
		case p.Format == foreign.OpenCode:
			data = `{"mcp": {"a": {"type": "local", "command": ["x"]}}}`
		case p.Format == foreign.Zed:
			data = `{"context_servers": {"a": {"command": "x"}}}`
		case p.Format == foreign.VSCode:
			data = `{"mcp": {"servers": {"a": {"type": "stdio", "command": "x"}}}}`
		}
		parsed := foreign.Parse(config.File{Path: p.Path, Scope: messages.ScopeUser, Data: []byte(data)}, foreign.Context{})
		if parsed.Program != p.Format.Title() || parsed.Servers["a"].Spec.Command != "x" {
			t.Errorf("%s: %q, %+v", p.Path, parsed.Program, parsed.Problems)
		}
	}
	for _, f := range foreign.Formats {
		if !seen[f] {
			t.Errorf("%s has no place", f)
		}
	}
}
