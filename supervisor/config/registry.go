package config

import "github.com/mcpvisor/mcpvisor/messages"

// registryKey is a key of a file, beside its servers: the base URL of the MCP registry that servers are installed from.
const registryKey = "registry"

// readRegistry reads the URL. What it must be is checked where it is used.
func (r *reader) readRegistry(v value, p *Parsed) {
	const fix = `write "https://HOST"`
	l, ok := literalOf(v.Value)
	if !ok || l.Kind() != '"' || l.String() == "" {
		r.reportType(v, "a URL", fix)
		return
	}
	// The choice of a registry decides what a name means, and so which programs run.
	if p.Scope == messages.ScopeProject || p.Scope == messages.ScopeLocal {
		r.addWarning(r.posOf(v.Value), v.key, "a project file cannot say which registry servers come from; the key is dropped",
			"set it in your own file, or use --registry")
		return
	}
	p.Registry = l.String()
}

// registryOf is the registry of the file that counts, as samplingOf is the command.
func registryOf(files []Parsed, exclusive bool) (registry string) {
	managed := ""
	for _, f := range files {
		switch {
		case f.Registry == "":
		case f.Scope == messages.ScopeManaged:
			managed = f.Registry
		case !exclusive:
			registry = f.Registry
		}
	}
	if managed != "" {
		return managed
	}
	return registry
}
