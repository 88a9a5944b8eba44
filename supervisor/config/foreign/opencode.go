package foreign

import "strings"

// openCodeSections finds mcp.NAME (version 1) or mcp.servers.NAME (version 2).
func openCodeSections(r *fileReading) {
	list, ok := valueAt(r.tree.Root, "mcp")
	if !ok {
		return
	}
	key := "mcp"
	if v, nested := valueAt(list, "servers"); nested && !describesServer(v.Value) {
		key, list = "mcp.servers", v
	}
	r.addServers(key, list, nil)
	tools, _ := valueAt(r.tree.Root, "tools")
	for _, m := range membersOf(tools) {
		for _, server := range membersOf(list) {
			if strings.HasPrefix(nameOf(m), nameOf(server)+"_") || nameOf(m) == nameOf(server)+"*" {
				r.addProblem(m.Name.StartOffset, nameOf(server), "tools."+nameOf(m), "which tools are offered is not carried over",
					"write allowedTools or deniedTools into the server", true)
			}
		}
	}
}

func openCodeEntry(e *entry) bool {
	if !e.hasAnyKey("command", "url") && e.dropOverlay() {
		return false
	}
	e.renameKey("timeout", "startupTimeout") // it bounds the first list of tools
	if m := e.findMember("oauth"); m != nil {
		for _, k := range membersOf(m.Value) {
			if key := nameOf(k); key == "callbackUrl" || key == "enabled" {
				e.warnLost(k.Name.StartOffset, "oauth."+key, "it is not carried over", "")
			}
		}
	}
	return true
}
