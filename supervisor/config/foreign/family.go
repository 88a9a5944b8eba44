package foreign

import "strings"

// familySections finds mcpServers, which most programs share; some people write servers, as VS Code does.
func familySections(r *fileReading) {
	for _, m := range membersOf(r.tree.Root) {
		key := nameOf(m)
		if key == "mcpServers" || key == "servers" || key == "mcp_servers" || strings.HasSuffix(key, ".mcpServers") {
			if v := m.Value.Value.Kind(); v == '{' || v == '[' {
				r.addServers(key, m.Value, nil)
			}
		}
	}
}

// familyEntry rewrites what stands in the entries of programs that share mcpServers, and does not mean what it means here.
func familyEntry(e *entry) bool {
	e.allTools("tools", false)
	for _, key := range []string{"autoApprove", "alwaysAllow"} {
		if m := e.findMember(key); m != nil && (len(elementsOf(m.Value)) == 0 && m.Value.Value.Kind() == '[') {
			e.takeMember(key) // the person is asked no less without it
		}
	}
	for _, key := range []string{"sandboxEnabled", "trust"} {
		if m := e.findMember(key); m != nil && !isTrue(m.Value) {
			e.takeMember(key)
		}
	}
	if m := e.findMember("auth"); m != nil && memberOf(m.Value, "CLIENT_ID") != nil {
		at := m.Value.StartOffset
		e.mergeInto("auth", at, newMember("type", at, textValue("oauth", at))) // Cursor's sign-in with a client that is known beforehand
	}
	e.signIn("oauthScopes", "scopes")
	return true
}

// secondsEntry is familyEntry for programs whose time-out counts seconds.
func secondsEntry(e *entry) bool {
	e.addSecondsUnit("timeout")
	return familyEntry(e)
}
