package foreign

import "strings"

// familySections finds mcpServers, which most programs share, and the keys that people write in its place: servers as
// in VS Code, mcp_servers as in Codex, and settings with dots.
func familySections(r *fileReading) {
	for _, m := range membersOf(r.tree.Root) {
		key := nameOf(m)
		if key == "mcpServers" || key == "servers" || key == "mcp_servers" || strings.HasSuffix(key, ".mcpServers") {
			// A value of another kind is no list of servers, and may belong to another feature of the program.
			if v := m.Value.Value.Kind(); v == '{' || v == '[' {
				r.addServers(key, m.Value, nil)
			}
		}
	}
}

// familyEntry rewrites the keys that programs with mcpServers share and that mean something else in config.
func familyEntry(e *entry) bool {
	e.allTools("tools", false)
	for _, key := range []string{"autoApprove", "alwaysAllow"} {
		if m := e.findMember(key); m != nil && (len(elementsOf(m.Value)) == 0 && m.Value.Value.Kind() == '[') {
			// An empty list approves no tool, so that nothing is lost without it.
			e.takeMember(key)
		}
	}
	// Both keys are defaults when false, and would get a warning.
	for _, key := range []string{"sandboxEnabled", "trust"} {
		if m := e.findMember(key); m != nil && !isTrue(m.Value) {
			e.takeMember(key)
		}
	}
	if m := e.findMember("auth"); m != nil && memberOf(m.Value, "CLIENT_ID") != nil {
		// Cursor signs in with a client that is registered beforehand, and writes no type.
		at := m.Value.StartOffset
		e.mergeInto("auth", at, newMember("type", at, textValue("oauth", at)))
	}
	// The scopes stand beside the object of the sign-in here.
	e.signIn("oauthScopes", "scopes")
	return true
}

// secondsEntry does the work of familyEntry for programs whose timeout counts seconds.
func secondsEntry(e *entry) bool {
	e.addSecondsUnit("timeout")
	return familyEntry(e)
}
