package foreign

import (
	"fmt"
	"path/filepath"
	"slices"
)

// claudeSections finds the servers of ~/.claude.json: those for every directory, and those of the one in which the person works
// in, which win.
func claudeSections(r *reading) {
	projects, _ := in(r.tree.Root, "projects")
	var own []string
	var disabled []string
	others, at := 0, 0
	for _, m := range members(projects) {
		v, _ := in(m.Value, "mcpServers")
		here := r.dir != "" && filepath.Clean(nameOf(m)) == filepath.Clean(r.dir)
		if off, ok := in(m.Value, "disabledMcpServers"); ok && here {
			for _, el := range elements(off) {
				s, _ := textOf(el)
				disabled = append(disabled, s)
			}
		}
		switch {
		case len(members(v)) == 0:
		case !here:
			if others++; others == 1 {
				at = m.Name.StartOffset
			}
		default:
			for _, s := range members(v) {
				own = append(own, nameOf(s))
			}
		}
	}
	switchOff := func(name string, e *entry) bool {
		if slices.Contains(disabled, name) {
			e.add("disabled", e.at, truth(true, e.at))
		}
		return true
	}
	if v, ok := in(r.tree.Root, "mcpServers"); ok {
		r.servers("mcpServers", v, func(name string, e *entry) bool {
			if slices.Contains(own, name) {
				e.lose(e.at, "", "the server of the same name of this project wins", "")
				return false
			}
			return switchOff(name, e)
		})
	}
	for _, m := range members(projects) {
		if v, ok := in(m.Value, "mcpServers"); ok && r.dir != "" && filepath.Clean(nameOf(m)) == filepath.Clean(r.dir) {
			r.servers("projects."+nameOf(m)+".mcpServers", v, switchOff)
		}
	}
	if others > 0 {
		what := "another project has servers, which"
		if others > 1 {
			what = fmt.Sprintf("%d other projects have servers, which", others)
		}
		r.say(at, "", "projects", what+" count only in their own directories", "", true)
	}
}
