package foreign

import (
	"encoding/json"
	"maps"
	"path"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// StdioEntry is a server over stdio in the form of one program.
type StdioEntry struct {
	// Path holds the keys that lead to the entry: those of the list of servers, and the name.
	Path []string
	// Value is the entry as a JSON object. Its members are texts, booleans, numbers, lists of texts and an object of texts, in the
	// order in which people write them.
	Value json.RawMessage
}

// StdioEntryFor returns how a program's file names a server that is started by a command, with variables for it. The file is the one
// that the entry comes to: opencode has two forms, of which the file's own is taken. [Parse] reads the entry back.
func StdioEntryFor(f Format, file config.File, name, command string, args []string, env map[string]string) StdioEntry {
	text := func(key, value string) hujson.ObjectMember { return newMember(key, 0, textValue(value, 0)) }
	words := func(key string, all ...string) hujson.ObjectMember { return newMember(key, 0, textList(all)) }
	on := newMember("enabled", 0, boolValue(true, 0))
	list := []string{"mcpServers"}
	members := []hujson.ObjectMember{text("command", command), words("args", args...)}
	switch f {
	case ClaudeCode:
		members = append([]hujson.ObjectMember{text("type", "stdio")}, members...)
	case VSCode:
		list = []string{"servers"}
		members = append([]hujson.ObjectMember{text("type", "stdio")}, members...)
	case Codex:
		list = []string{"mcp_servers"}
	case OpenCode:
		list = []string{"mcp"}
		members = []hujson.ObjectMember{text("type", "local"), words("command", append([]string{command}, args...)...)}
		if usesNestedServers(file) {
			list = []string{"mcp", "servers"}
		} else {
			members = append(members, on)
		}
	case Zed:
		list = []string{"context_servers"}
	case Goose:
		list = []string{"extensions"}
		members = []hujson.ObjectMember{text("name", name), text("type", "stdio"), text("cmd", command), words("args", args...), on,
			newMember("timeout", 0, hujson.Value{Value: hujson.Int(gooseTimeout)})}
	case Copilot:
		members = append(append([]hujson.ObjectMember{text("type", "local")}, members...), words("tools", "*"))
	default: // the form that most programs share
	}
	if len(env) > 0 {
		var variables []hujson.ObjectMember
		for _, key := range slices.Sorted(maps.Keys(env)) {
			variables = append(variables, text(key, env[key]))
		}
		members = append(members, newMember(envKeyOf(f), 0, objectValue(0, variables...)))
	}
	value := objectValue(0, members...)
	return StdioEntry{Path: append(list, name), Value: json.RawMessage(value.Pack())}
}

// envKeyOf returns the key under which a program's entry has variables.
func envKeyOf(f Format) string {
	switch f {
	case OpenCode:
		return "environment"
	case Goose:
		return "envs"
	default:
		return "env"
	}
}

// gooseTimeout is what Goose itself writes for a new extension, in seconds. It bounds a call.
const gooseTimeout = 300

// usesNestedServers reports whether a file of opencode has the form of version 2, with servers one level deeper.
func usesNestedServers(file config.File) bool {
	tree, _, bad := readTree(file)
	if bad != nil {
		return false
	}
	v, nested := valueAt(tree.Root, "mcp", "servers")
	return nested && !describesServer(v.Value)
}

// textList returns a JSON list of texts.
func textList(words []string) hujson.Value {
	list := &hujson.Array{}
	for _, w := range words {
		list.Elements = append(list.Elements, textValue(w, 0))
	}
	return hujson.Value{Value: list}
}

// Syntax returns the language in which a program keeps its servers: "JSON", "TOML" or "YAML".
func (f Format) Syntax() string {
	switch f {
	case Codex:
		return string(inTOML)
	case Goose:
		return string(inYAML)
	default:
		return string(inJSON)
	}
}

// TakesServers reports whether a new server belongs into this file of its program. Into settings.json, which VS Code reads too,
// it does not.
func (p Location) TakesServers() bool {
	return !p.Project && (p.Format != VSCode || path.Base(p.Path) == "mcp.json")
}
