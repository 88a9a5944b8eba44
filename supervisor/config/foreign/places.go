package foreign

import (
	"path"
	"strings"
)

// Place is a file in which a program keeps its servers.
type Place struct {
	Format Format
	Path   string
	// Project says that the file lies in the directory in which the person works, and may be a stranger's work.
	Project bool
}

// Machine holds the facts on which the places depend: system, home, environment.
type Machine struct {
	// OS is a GOOS.
	OS string
	// Home and Dir are the person's directory and the one they work in.
	Home, Dir string
	// Lookup gives environment variables; nil: none is set.
	Lookup func(string) (string, bool)
}

// Places are the files of every program on a machine, whether they are there or not, in the order in which they count:
// the person's own before those of the project. Paths have slashes, which every system understands.
func Places(m Machine) []Place {
	var all []Place
	add := func(f Format, paths ...string) {
		for _, p := range paths {
			if p != "" {
				all = append(all, Place{Format: f, Path: p})
			}
		}
	}
	config, support := m.config(), m.support()
	add(ClaudeCode, below(m.get("CLAUDE_CONFIG_DIR", m.Home), ".claude.json"))
	add(ClaudeDesktop, below(support, "Claude/claude_desktop_config.json"))
	var storage []string
	for _, kind := range []string{"Code", "Code - Insiders", "VSCodium"} {
		add(VSCode, below(support, kind, "User/mcp.json"), below(support, kind, "User/settings.json"))
		storage = append(storage, below(support, kind, "User/globalStorage"))
	}
	add(Cursor, below(m.Home, ".cursor/mcp.json"))
	add(Windsurf, below(m.Home, ".codeium/windsurf/mcp_config.json"), below(m.Home, ".codeium/mcp_config.json"))
	add(Codex, below(m.get("CODEX_HOME", below(m.Home, ".codex")), "config.toml"))
	add(Gemini, below(m.Home, ".gemini/settings.json"))
	add(OpenCode, below(config, "opencode/opencode.json"), below(config, "opencode/opencode.jsonc"))
	if m.OS == "windows" {
		add(Zed, below(support, "Zed/settings.json"))
		add(Goose, below(support, "Block/goose/config/config.yaml"))
	} else {
		add(Zed, below(config, "zed/settings.json"))
		add(Goose, below(config, "goose/config.yaml"))
	}
	add(Kiro, below(m.Home, ".kiro/settings/mcp.json"))
	for _, s := range storage {
		add(Roo, below(s, "rooveterinaryinc.roo-cline/settings/mcp_settings.json"))
		add(Cline, below(s, "saoudrizwan.claude-dev/settings/cline_mcp_settings.json"))
	}
	add(Cline, below(m.Home, ".cline/data/settings/cline_mcp_settings.json"))
	add(Copilot, below(m.get("XDG_CONFIG_HOME", m.Home), ".copilot/mcp-config.json"))
	add(LMStudio, below(m.Home, ".lmstudio/mcp.json"))
	if m.Dir != "" && m.Dir != m.Home {
		all = append(all, projectPlaces(m.Dir)...)
	}
	return all
}

func projectPlaces(dir string) []Place {
	var all []Place
	for _, p := range []struct {
		format Format
		paths  []string
	}{
		{VSCode, []string{".vscode/mcp.json", ".vscode/settings.json", ".devcontainer/devcontainer.json", ".devcontainer.json"}},
		{Cursor, []string{".cursor/mcp.json"}},
		{Codex, []string{".codex/config.toml"}},
		{Gemini, []string{".gemini/settings.json"}},
		{OpenCode, []string{"opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"}},
		{Zed, []string{".zed/settings.json"}},
		{Kiro, []string{".kiro/settings/mcp.json"}},
		{Roo, []string{".roo/mcp.json"}},
		{Copilot, []string{".github/mcp.json"}},
	} {
		for _, file := range p.paths {
			all = append(all, Place{p.format, below(dir, file), true})
		}
	}
	return all
}

// get is the value of a variable, or other if it is not set or empty.
func (m Machine) get(name, other string) string {
	if m.Lookup != nil {
		if v, ok := m.Lookup(name); ok && v != "" {
			return v
		}
	}
	return other
}

// config is where programs of Unix keep their configuration, on every system.
func (m Machine) config() string { return m.get("XDG_CONFIG_HOME", below(m.Home, ".config")) }

// support is where programs with a window keep theirs.
func (m Machine) support() string {
	switch m.OS {
	case "darwin":
		return below(m.Home, "Library/Application Support")
	case "windows":
		return m.get("APPDATA", below(m.Home, "AppData/Roaming"))
	}
	return m.config()
}

// below is a file under a directory; empty if the directory is not known.
func below(dir string, parts ...string) string {
	if dir == "" {
		return ""
	}
	return path.Join(append([]string{slashed(dir)}, parts...)...)
}

// slashed is a directory of Windows with slashes; one of Unix stays as it is, where a backslash is a letter.
func slashed(dir string) string {
	if len(dir) > 1 && dir[1] == ':' || strings.HasPrefix(dir, `\\`) {
		return strings.ReplaceAll(dir, `\`, "/")
	}
	return dir
}
