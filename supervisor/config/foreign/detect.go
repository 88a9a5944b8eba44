package foreign

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// syntax is the language of a file, in the word for a sentence.
type syntax string

const (
	// JSON may have comments and trailing commas.
	inJSON syntax = "JSON"
	inTOML syntax = "TOML"
	inYAML syntax = "YAML"
)

// readTree reads a file in the syntax that its first characters and its name show. The problem is nil if the text could
// be read.
func readTree(f config.File) (config.Tree, syntax, *config.Problem) {
	s := syntaxOf(f.Path, f.Data)
	var t config.Tree
	var bad *config.Problem
	switch s {
	case inTOML:
		t, bad = readTOML(f.Path, f.Data)
	case inYAML:
		t, bad = readYAML(f.Path, f.Data)
	default:
		t, bad = config.ReadJSON(f.Path, f.Data)
	}
	return t, s, bad
}

var (
	// tomlLine matches a line that begins a table or sets a key, yamlLine a key at the beginning of a line. They decide
	// only for files whose name has no known ending.
	tomlLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[ \t]*(\[\[?[ \t]*["'A-Za-z0-9_-][^\]\n]*\]\]?[ \t]*(#.*)?\r?$|[A-Za-z0-9_."-]+[ \t]*=)`)
	})
	yamlLine = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^(extensions|mcpServers|mcp_servers|[A-Za-z0-9_-]+):([ \t]|\r?$)`)
	})
)

// syntaxOf returns the syntax of a file. The first character decides before the name does: text that begins with a
// brace is JSON under every name.
func syntaxOf(file string, data []byte) syntax {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	begin := bytes.TrimLeft(data, " \t\r\n")
	switch ext := strings.ToLower(path.Ext(strings.ReplaceAll(file, `\`, "/"))); {
	case bytes.HasPrefix(begin, []byte("{")), bytes.HasPrefix(begin, []byte("//")), bytes.HasPrefix(begin, []byte("/*")):
		return inJSON
	case ext == ".toml":
		return inTOML
	case ext == ".yaml", ext == ".yml":
		return inYAML
	case ext == ".json", ext == ".jsonc", len(begin) == 0:
		return inJSON
	// A name without a known ending leaves the content to decide, TOML first, because its lines are the more
	// distinctive.
	case tomlLine().Match(data):
		return inTOML
	case yamlLine().Match(data):
		return inYAML
	}
	return inJSON
}

// detectFormat returns the program whose form a file has: by keys that only one program uses, then by its name, then by
// the keys of its entries. The order of the cases matters, because several programs share mcpServers and some read each
// other's files.
func detectFormat(file string, s syntax, root hujson.Value) Format {
	byName := formatOfName(file)
	has := func(keys ...string) bool { _, ok := valueAt(root, keys...); return ok }
	schema := ""
	// A file may name its program by the address of its schema.
	if v, ok := valueAt(root, "$schema"); ok {
		schema, _ = textOf(v)
	}
	switch {
	// Other programs with YAML than Goose exist, and have the usual keys.
	case s == inYAML && !has("extensions") && (has("mcp_servers") || has("mcpServers")):
		return unknownFormat
	// Codex is the only one with TOML, but any TOML file may be named in an import.
	case has("mcp_servers"), s == inTOML && (byName == Codex || slices.ContainsFunc(codexKeys, func(k string) bool { return has(k) })):
		return Codex
	case s == inTOML:
		return Own
	// The key is Zed's alone.
	case has("context_servers"):
		return Zed
	case s == inYAML && (has("extensions") || byName == Goose || gooseKeys(root)):
		return Goose
	case s == inYAML:
		return Own
	case strings.Contains(schema, "opencode.ai"):
		return OpenCode
	// A dev container, settings.json, and settings with dots.
	case has("customizations", "vscode"), has("settings", "mcp"), has("mcp.servers"):
		return VSCode
	// These programs ignore mcpServers, so that a file with it follows another form than its name says.
	case byName == OpenCode && !has("mcpServers"), byName == Zed && !has("mcpServers"), byName == ClaudeCode:
		return byName
	case has("mcp") && !has("mcpServers"):
		return underMCP(root)
	// Claude Code writes the count of its starts into the file.
	case has("numStartups"), has("projects") && !has("servers") && keepsProjects(root):
		return ClaudeCode
	// The values that VS Code asks for stand beside its servers.
	case has("inputs") && has("servers"):
		return VSCode
	// The content decided nothing, and the name is left.
	case byName != Own:
		return byName
	case has("mcpServers"):
		return byEntries(root)
	}
	return Own
}

// codexKeys holds keys that show settings of Codex in a TOML file without servers.
var codexKeys = []string{"mcpServers", "model", "model_provider", "approval_policy", "sandbox_mode", "features", "profiles"}

// geminiKeys holds keys that stand beside mcpServers in Gemini's settings.
var geminiKeys = []string{"mcp", "selectedAuthType", "contextFileName", "autoAccept", "coreTools", "security", "general", "ide",
	"context", "checkpointing"}

// gooseKeys reports whether the file has one of Goose's settings, whose names begin with GOOSE_.
func gooseKeys(root hujson.Value) bool {
	return slices.ContainsFunc(membersOf(root), func(m hujson.ObjectMember) bool {
		return strings.HasPrefix(nameOf(m), "GOOSE_")
	})
}

// underMCP tells opencode from VS Code, both of which have "mcp", by the words for types and by lists under command.
// Without such a sign, servers one level deeper mean VS Code.
func underMCP(root hujson.Value) Format {
	list, _ := valueAt(root, "mcp")
	if _, ok := valueAt(list, "inputs"); ok {
		return VSCode
	}
	// Both programs also have a form with servers one level deeper.
	servers, nested := valueAt(list, "servers")
	if !nested {
		servers = list
	}
	for _, m := range membersOf(servers) {
		if t, ok := valueAt(m.Value, "type"); ok {
			// Each program has words of its own for the types.
			switch word, _ := textOf(t); word {
			case "local", "remote":
				return OpenCode
			case "stdio", "http", "sse":
				return VSCode
			}
		}
		if c, ok := valueAt(m.Value, "command"); ok && c.Value.Kind() == '[' {
			return OpenCode
		}
	}
	if nested {
		return VSCode
	}
	return OpenCode
}

// keepsProjects reports whether an entry under projects has servers, as ~/.claude.json has them.
func keepsProjects(root hujson.Value) bool {
	projects, _ := valueAt(root, "projects")
	return slices.ContainsFunc(membersOf(projects), func(m hujson.ObjectMember) bool {
		// Other programs have a key projects with other content.
		_, ok := valueAt(m.Value, "mcpServers")
		return ok
	})
}

// byEntries recognises a program by the keys of its entries, in a file of unknown name that has mcpServers. Own is the
// answer for entries in the common form, which config reads itself.
func byEntries(root hujson.Value) Format {
	list, _ := valueAt(root, "mcpServers")
	// All keys of all entries count, because a single entry may lack the telling one.
	found := map[string]bool{}
	for _, m := range membersOf(list) {
		for _, k := range membersOf(m.Value) {
			found[nameOf(k)] = true
		}
	}
	hasAny := func(keys []string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { _, ok := valueAt(root, key); return ok })
	}
	// The rarest keys come first: autoApprove and tools occur in several programs.
	switch {
	case found["httpUrl"], found["trust"], found["includeTools"], found["excludeTools"], hasAny(geminiKeys):
		return Gemini
	case found["env_vars"], found["env_http_headers"], found["bearer_token_env_var"], found["tool_timeout_sec"],
		found["startup_timeout_sec"]:
		// Plugins of Codex are JSON.
		return Codex
	case found["alwaysAllow"]:
		return Roo
	case found["transportType"], found["autoApprove"] && found["timeout"]:
		return Cline
	case found["autoApprove"]:
		return Kiro
	case found["tools"]:
		return Copilot
	case found["serverUrl"]:
		return Windsurf
	case found["envFile"]:
		return Cursor
	case hasAny([]string{"globalShortcut", "preferences"}):
		return ClaudeDesktop
	}
	return Own
}
