package supervisor

// resolveToolName returns the configured server that a qualified name belongs to, also if the catalog does not show it, and the
// tool's own name if that can be known. A plain name contains both. A name with a hash is searched in the newest list of each
// server; if no list has it, it belongs to the only server that fits and has no list yet. It is empty if several would fit:
// the caller must not wake a server on a guess.
func (m *Manager) resolveToolName(qualified string) (server, tool string) {
	// A plain name says which server it means, even if that server has no connection and no list.
	if server, tool, plain := m.cfg.Naming.Split(qualified); plain {
		if m.shared.CellOf(server) == nil {
			return "", ""
		}
		return server, tool
	}
	// A hash cannot be reversed, so the names of every fitting server are computed and compared.
	unlisted := 0
	for _, name := range m.Servers() {
		cell := m.shared.CellOf(name)
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
