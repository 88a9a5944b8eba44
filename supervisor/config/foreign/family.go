package foreign

import "strings"

// familySections finds mcpServers, which most programs share; some people write servers, as VS Code does.
func familySections(r *reading) {
	for _, m := range members(r.tree.Root) {
		key := nameOf(m)
		if key == "mcpServers" || key == "servers" || key == "mcp_servers" || strings.HasSuffix(key, ".mcpServers") {
			if v := m.Value.Value.Kind(); v == '{' || v == '[' {
				r.servers(key, m.Value, nil)
			}
		}
	}
}

// familyEntry rewrites what stands in the entries of programs that share mcpServers, and does not mean what it means here.
func familyEntry(e *entry) bool {
	e.allTools("tools", false)
	for _, key := range []string{"autoApprove", "alwaysAllow"} {
		if m := e.get(key); m != nil && (len(elements(m.Value)) == 0 && m.Value.Value.Kind() == '[') {
			e.take(key) // the person is asked no less without it
		}
	}
	for _, key := range []string{"sandboxEnabled", "trust"} {
		if m := e.get(key); m != nil && !isTrue(m.Value) {
			e.take(key)
		}
	}
	if m := e.get("auth"); m != nil && memberOf(m.Value, "CLIENT_ID") != nil {
		at := m.Value.StartOffset
		e.into("auth", at, member("type", at, text("oauth", at))) // Cursor's sign-in with a client that is known beforehand
	}
	e.signIn("oauthScopes", "scopes")
	return true
}

// secondsEntry is familyEntry for programs whose time-out counts seconds.
func secondsEntry(e *entry) bool {
	e.seconds("timeout")
	return familyEntry(e)
}
