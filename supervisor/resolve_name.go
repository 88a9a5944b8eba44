package supervisor

// resolveToolName finds the configured server that a qualified name belongs to, whatever the catalog shows, and the tool's own name as
// far as it can be known. A plain name says both. One with a hash is looked for in the list that each server gave last; if it
// is in none, it belongs to the only server that it fits and that has not given one.
func (m *Manager) resolveToolName(qualified string) (server, tool string) {
	if server, tool, plain := m.cfg.Naming.Split(qualified); plain {
		if m.shared.cellOf(server) == nil {
			return "", ""
		}
		return server, tool
	}
	unlisted := 0
	for _, name := range m.Servers() {
		cell := m.shared.cellOf(name)
		if cell == nil || !m.cfg.Naming.MayBeOf(qualified, name) {
			continue
		}
		list := cell.View().Tools
		if list == nil {
			server, unlisted = name, unlisted+1
			continue
		}
		for i := range list.Tools {
			if m.cfg.Naming.Tool(name, list.Tools[i].Name) == qualified {
				return name, list.Tools[i].Name
			}
		}
	}
	if unlisted != 1 {
		server = ""
	}
	return server, ""
}
