package foreign

import "slices"

// geminiSections finds mcpServers in settings.json. Servers that mcp.allowed leaves out, or that mcp.excluded names,
// become disabled.
func geminiSections(r *fileReading) {
	// ok tells a list that is there and empty, which allows no server, from one that is missing.
	names := func(key string) (list []string, ok bool) {
		v, ok := valueAt(r.tree.Root, "mcp", key)
		for _, el := range elementsOf(v) {
			s, _ := textOf(el)
			list = append(list, s)
		}
		return list, ok
	}
	allowed, only := names("allowed")
	excluded, _ := names("excluded")
	if mcp, ok := valueAt(r.tree.Root, "mcp"); ok {
		// The command is one for all servers, and config starts each by its own.
		if m := memberOf(mcp, "serverCommand"); m != nil {
			r.addProblem(m.Name.StartOffset, "", "mcp.serverCommand", "the command that starts servers is not carried over", "", true)
		}
	}
	if v, ok := valueAt(r.tree.Root, "mcpServers"); ok {
		r.addServers("mcpServers", v, func(name string, e *entry) bool {
			// A disabled server stays visible, and the person can enable it.
			if only && !slices.Contains(allowed, name) || slices.Contains(excluded, name) {
				e.addMember("disabled", e.offset, boolValue(true, e.offset))
			}
			return true
		})
	}
}

// geminiEntry rewrites one server of Gemini: tcp is a WebSocket URL, and oauth has keys of its own.
func geminiEntry(e *entry) bool {
	// Both members keep the place of tcp for problems.
	if m, ok := e.takeMember("tcp"); ok {
		e.tree.Spelled[m.Name.StartOffset] = "tcp"
		e.addMember("type", m.Name.StartOffset, textValue("ws", m.Value.StartOffset))
		e.addMember("url", m.Name.StartOffset, m.Value)
	}
	if m := e.findMember("trust"); m != nil && !isTrue(m.Value) {
		e.takeMember("trust")
	}
	if m := e.findMember("oauth"); m != nil {
		// A sign-in that is switched off needs nothing here.
		if on, ok := valueAt(m.Value, "enabled"); ok && on.Value.Kind() == 'f' {
			e.takeMember("oauth")
		} else {
			e.geminiSignIn()
		}
	}
	return familyEntry(e)
}

// geminiSignIn keeps the keys of oauth that config understands, and warns about those that change the sign-in. An
// object without any of them still asks for a sign-in.
func (e *entry) geminiSignIn() {
	m, _ := e.takeMember("oauth")
	kept := objectValue(m.Value.StartOffset)
	for _, k := range membersOf(m.Value) {
		switch key := nameOf(k); key {
		// The key is true or absent here: the caller has handled false.
		case "enabled":
		// These keys change requests in a way that config has no key for.
		case "tokenParamName", "audiences", "registrationUrl":
			e.warnLost(k.Name.StartOffset, "oauth."+key, "it is not carried over", "")
		default:
			e.mergeInto("oauth", m.Name.StartOffset, k)
		}
	}
	if !e.hasAnyKey("oauth") {
		e.addMember("oauth", m.Name.StartOffset, kept)
	}
}
