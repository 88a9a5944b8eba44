package config

import "github.com/mcpvisor/mcpvisor/messages"

// registryKey names a key of a file, beside its servers: the base URL of the MCP registry that servers are installed from.
const registryKey = "registry"

// readRegistry reads the URL. Package install checks its form when it uses it.
func (r *reader) readRegistry(v value, p *Parsed) {
	const fix = `write "https://HOST"`
	l, ok := literalOf(v.Value)
	if !ok || l.Kind() != '"' || l.String() == "" {
		r.reportType(v, "a URL", fix)
		return
	}
	// The registry decides which programs a name stands for, so that a stranger must not choose it.
	if p.Scope == messages.ScopeProject || p.Scope == messages.ScopeLocal {
		r.addWarning(r.posOf(v.Value), v.key, "a project file cannot say which registry servers come from; the key is dropped",
			"set it in your own file, or use --registry")
		return
	}
	p.Registry = l.String()
}

// registryOf returns the registry of a managed file, or else of the file with the highest precedence, unless a managed file is
// exclusive.
func registryOf(files []Parsed, exclusive bool) (registry string) {
	managed := ""
	for _, f := range files {
		switch {
		case f.Registry == "":
		case f.Scope == messages.ScopeManaged:
			managed = f.Registry
		// Files come lowest precedence first, so that the last one stays.
		case !exclusive:
			registry = f.Registry
		}
	}
	if managed != "" {
		return managed
	}
	return registry
}
