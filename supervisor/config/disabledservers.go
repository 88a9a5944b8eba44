package config

import (
	"cmp"

	"github.com/mcpvisor/mcpvisor/messages"
)

// DisabledKey is a key of a file, beside its servers: names of servers that are off for whom this file is, whichever file
// has their entries. One person switches a server of a project off with it and leaves the file of all others as it is.
const DisabledKey = "disabledServers"

func (r *reader) readDisabled(v value, p *Parsed) {
	const fix = `write ["name", "other"]`
	if r.positions == nil {
		r.positions = map[string]Pos{}
		defer func() { r.positions = nil }()
	}
	names, ok := r.readList(v, fix, r.readText)
	if !ok {
		return
	}
	if p.Scope == messages.ScopeProject {
		r.addWarning(r.posOf(v.Value), v.key, "the file of a project says this of its entries, one by one; the key is dropped",
			`write "disabled": true into the entry`)
		return
	}
	p.DisabledServers = names
}

// disabledBy is the file that switches each server off: the first that does; files are in the order of their precedence. Where a managed
// file is exclusive no other one counts.
func disabledBy(files []Parsed, exclusive bool) map[string]string {
	byServer := map[string]string{}
	for _, f := range files {
		if exclusive && f.Scope != messages.ScopeManaged {
			continue
		}
		for _, name := range f.DisabledServers {
			byServer[name] = cmp.Or(byServer[name], f.Path)
		}
	}
	return byServer
}

// disableSpec switches a server off that a file names.
func disableSpec(spec *messages.Spec, file string) {
	if file == "" || spec.Disabled {
		return
	}
	spec.Disabled = true
	text := DisabledKey + " of " + file + " has it"
	if spec.Remark != "" {
		text = spec.Remark + "; " + text
	}
	spec.Remark = text
}
