package config

import (
	"cmp"

	"github.com/mcpvisor/mcpvisor/messages"
)

// DisabledKey names a key of a file, beside its servers: a list of servers that are off for the person whose file this is,
// whichever file has their entries. One person switches a server of a project off with it and leaves the project's file as it
// is for all others.
const DisabledKey = "disabledServers"

// readDisabled reads the list. The key in the shared file of a project is dropped with a warning, because such a file says it
// in each entry; the person's own file for the project may have it.
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
	// The list is read first, so that problems in it are reported as well.
	if p.Scope == messages.ScopeProject {
		r.addWarning(r.posOf(v.Value), v.key, "the file of a project says this of its entries, one by one; the key is dropped",
			`write "disabled": true into the entry`)
		return
	}
	p.DisabledServers = names
}

// disabledBy maps each server that is switched off to the first file that does so; files come lowest precedence first. If a
// managed file is exclusive, the lists of all other files are ignored as their servers are.
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

// disableSpec switches a server off that the list of file names, and appends the reason to its Remark for the status. It does
// nothing if file is empty or the entry is disabled already.
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
