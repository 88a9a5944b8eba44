package foreign

import "strings"

// openCodeSections finds mcp.NAME (version 1) or mcp.servers.NAME (version 2).
func openCodeSections(r *fileReading) {
	list, ok := valueAt(r.tree.Root, "mcp")
	if !ok {
		return
	}
	key := "mcp"
	// A server of version 1 may itself be called "servers".
	if v, nested := valueAt(list, "servers"); nested && !describesServer(v.Value) {
		key, list = "mcp.servers", v
	}
	// Each server has a name of its own here; a list of entries does not occur.
	r.addServers(key, list, nil)
	// opencode switches tools by SERVER_TOOL at the top of the file; config has lists in each entry.
	tools, _ := valueAt(r.tree.Root, "tools")
	for _, m := range membersOf(tools) {
		for _, server := range membersOf(list) {
			// A pattern SERVER* covers all tools of a server.
			if strings.HasPrefix(nameOf(m), nameOf(server)+"_") || nameOf(m) == nameOf(server)+"*" {
				r.addProblem(m.Name.StartOffset, nameOf(server), "tools."+nameOf(m), "which tools are offered is not carried over",
					"write allowedTools or deniedTools into the server", true)
			}
		}
	}
}

// openCodeEntry rewrites one server of opencode. It reports false for an entry that only changes a server of another
// file.
func openCodeEntry(e *entry) bool {
	if !e.hasAnyKey("command", "url") && e.dropOverlay() {
		return false
	}
	// The key bounds the first list of tools, and no call.
	e.renameKey("timeout", "startupTimeout")
	// The other keys of oauth mean the same in config.
	if m := e.findMember("oauth"); m != nil {
		for _, k := range membersOf(m.Value) {
			if key := nameOf(k); key == "callbackUrl" || key == "enabled" {
				e.warnLost(k.Name.StartOffset, "oauth."+key, "it is not carried over", "")
			}
		}
	}
	return true
}
