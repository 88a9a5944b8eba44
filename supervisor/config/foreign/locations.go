package foreign

import (
	"path"
	"strings"
)

// Location is a file in which a program keeps its servers, whether it exists or not.
type Location struct {
	Format Format
	// Path is absolute and has slashes.
	Path string
	// Project means that the file lies in the directory in which the person works, and may be a stranger's work.
	Project bool
}

// Machine holds the facts on which the places of files depend. It lets a test ask for the places of another system.
type Machine struct {
	// OS is a GOOS.
	OS string
	// Home is the person's home directory and Dir the one in which they work. Without Home, places below it are left
	// out.
	Home, Dir string
	// Lookup returns the value of an environment variable; with nil, none is set.
	Lookup func(string) (string, bool)
}

// Locations returns the files of every program on a machine in the order in which they count: the person's own before
// those of the project. It does not look at the file system. Paths have slashes, which every system understands.
func Locations(m Machine) []Location {
	var all []Location
	// An empty path has an unknown directory.
	add := func(f Format, paths ...string) {
		for _, p := range paths {
			if p != "" {
				all = append(all, Location{Format: f, Path: p})
			}
		}
	}
	config, support := m.configDir(), m.supportDir()
	// Variables of the programs themselves move some of the files.
	add(ClaudeCode, pathBelow(m.envOr("CLAUDE_CONFIG_DIR", m.Home), ".claude.json"))
	add(ClaudeDesktop, pathBelow(support, "Claude/claude_desktop_config.json"))
	// Extensions of VS Code keep their settings in a folder of each of its variants.
	var storage []string
	for _, kind := range []string{"Code", "Code - Insiders", "VSCodium"} {
		add(VSCode, pathBelow(support, kind, "User/mcp.json"), pathBelow(support, kind, "User/settings.json"))
		storage = append(storage, pathBelow(support, kind, "User/globalStorage"))
	}
	add(Cursor, pathBelow(m.Home, ".cursor/mcp.json"))
	add(Windsurf, pathBelow(m.Home, ".codeium/windsurf/mcp_config.json"), pathBelow(m.Home, ".codeium/mcp_config.json"))
	// CODEX_HOME takes the place of the whole directory.
	add(Codex, pathBelow(m.envOr("CODEX_HOME", pathBelow(m.Home, ".codex")), "config.toml"))
	add(Gemini, pathBelow(m.Home, ".gemini/settings.json"))
	// Both endings are read, in this order.
	add(OpenCode, pathBelow(config, "opencode/opencode.json"), pathBelow(config, "opencode/opencode.jsonc"))
	// On Windows these two programs use the directory of programs with a window.
	if m.OS == "windows" {
		add(Zed, pathBelow(support, "Zed/settings.json"))
		add(Goose, pathBelow(support, "Block/goose/config/config.yaml"))
	} else {
		add(Zed, pathBelow(config, "zed/settings.json"))
		add(Goose, pathBelow(config, "goose/config.yaml"))
	}
	add(Kiro, pathBelow(m.Home, ".kiro/settings/mcp.json"))
	for _, s := range storage {
		add(Roo, pathBelow(s, "rooveterinaryinc.roo-cline/settings/mcp_settings.json"))
		add(Cline, pathBelow(s, "saoudrizwan.claude-dev/settings/cline_mcp_settings.json"))
	}
	add(Cline, pathBelow(m.Home, ".cline/data/settings/cline_mcp_settings.json"))
	// Copilot puts its directory directly below XDG_CONFIG_HOME.
	add(Copilot, pathBelow(m.envOr("XDG_CONFIG_HOME", m.Home), ".copilot/mcp-config.json"))
	add(LMStudio, pathBelow(m.Home, ".lmstudio/mcp.json"))
	// In the home directory the person's own files would appear a second time as the project's.
	if m.Dir != "" && m.Dir != m.Home {
		all = append(all, projectLocations(m.Dir)...)
	}
	return all
}

// projectLocations returns the files that a project may bring, with Project set.
func projectLocations(dir string) []Location {
	var all []Location
	// .mcp.json is left out, because it is mcpvisor's own file as well.
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
			all = append(all, Location{p.format, pathBelow(dir, file), true})
		}
	}
	return all
}

// envOr returns the value of a variable, or other if it is not set or empty.
func (m Machine) envOr(name, other string) string {
	if m.Lookup != nil {
		if v, ok := m.Lookup(name); ok && v != "" {
			return v
		}
	}
	return other
}

// configDir returns the directory in which programs of Unix keep their configuration, on every system.
func (m Machine) configDir() string { return m.envOr("XDG_CONFIG_HOME", pathBelow(m.Home, ".config")) }

// supportDir returns the directory in which programs with a window keep theirs.
func (m Machine) supportDir() string {
	switch m.OS {
	// XDG_CONFIG_HOME has no influence on these programs here.
	case "darwin":
		return pathBelow(m.Home, "Library/Application Support")
	case "windows":
		return m.envOr("APPDATA", pathBelow(m.Home, "AppData/Roaming"))
	}
	return m.configDir()
}

// pathBelow returns a path under a directory; empty if the directory is not known.
func pathBelow(dir string, parts ...string) string {
	if dir == "" {
		return ""
	}
	return path.Join(append([]string{toSlashes(dir)}, parts...)...)
}

// toSlashes returns a directory of Windows with slashes. A directory of Unix is unchanged, because a backslash is a
// letter of its names.
func toSlashes(dir string) string {
	if len(dir) > 1 && dir[1] == ':' || strings.HasPrefix(dir, `\\`) {
		return strings.ReplaceAll(dir, `\`, "/")
	}
	return dir
}
