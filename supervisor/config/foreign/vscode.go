package foreign

import "github.com/tailscale/hujson"

// vscodePaths lists the keys that lead to servers in the files of VS Code: mcp.json itself, settings.json, a workspace,
// a dev container.
var vscodePaths = [][]string{
	{}, {"mcp"}, {"settings"}, {"settings", "mcp"}, {"customizations", "vscode", "mcp"}, {"customizations", "vscode", "settings"},
	{"customizations", "vscode", "settings", "mcp"},
}

// codeSections finds the servers under each of vscodePaths. The inputs of all places are collected first, because a
// server may use one that stands elsewhere in the file.
func codeSections(r *fileReading) {
	r.inputs = map[string]hujson.Value{}
	for _, place := range vscodePaths {
		at, ok := valueAt(r.tree.Root, place...)
		if !ok {
			continue
		}
		for _, key := range []string{"inputs", "mcp.inputs"} {
			list, _ := valueAt(at, key)
			for _, input := range elementsOf(list) {
				if id, ok := valueAt(input, "id"); ok {
					s, _ := textOf(id)
					r.inputs[s] = input
				}
			}
		}
		if m := memberOf(at, "sandbox"); m != nil {
			r.addProblem(m.Name.StartOffset, "", "sandbox", "the sandbox is not carried over", "", true)
		}
	}
	for _, place := range vscodePaths {
		at, ok := valueAt(r.tree.Root, place...)
		if !ok {
			continue
		}
		// Problems show the keys that lead to the section.
		path := ""
		for _, key := range place {
			path += key + "."
		}
		if m := memberOf(at, "servers"); m != nil {
			r.addServers(path+"servers", m.Value, nil)
		}
		// Settings may be written with dots.
		if m := memberOf(at, "mcp.servers"); m != nil {
			r.addServers(path+"mcp.servers", m.Value, nil)
		}
		// The author copied a file of another program; the servers are what they meant.
		if m := memberOf(at, "mcpServers"); m != nil {
			r.addProblem(m.Name.StartOffset, "", path+"mcpServers", "VS Code reads servers, not mcpServers; it is read here", "", true)
			r.addServers(path+"mcpServers", m.Value, nil)
		}
	}
}

// codeEntry rewrites one server of VS Code, whose http falls back to SSE.
func codeEntry(e *entry) bool {
	if !familyEntry(e) {
		return false
	}
	if m := e.findMember("type"); m != nil && !e.hasAnyKey("fallbackSSE") {
		// A URL without a type gets the fall-back from config.
		if kind, _ := textOf(m.Value); kind == "http" {
			e.addMember("fallbackSSE", m.Value.StartOffset, boolValue(true, m.Value.StartOffset))
		}
	}
	// These keys describe the development of a server or its place in a gallery.
	for _, key := range []string{"dev", "gallery", "version"} {
		e.takeMember(key)
	}
	return true
}
