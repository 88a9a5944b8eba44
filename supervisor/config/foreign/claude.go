package foreign

import (
	"fmt"
	"path/filepath"
	"slices"
)

// claudeSections finds the servers of ~/.claude.json: those for every directory, and those under projects for the
// directory in which the person works. Of two servers with one name the project's wins.
func claudeSections(r *fileReading) {
	// The first pass collects the project's names and its list of disabled servers, which the entries read below depend
	// on.
	projects, _ := valueAt(r.tree.Root, "projects")
	var own []string
	var disabled []string
	others, at := 0, 0
	for _, m := range membersOf(projects) {
		v, _ := valueAt(m.Value, "mcpServers")
		here := r.dir != "" && filepath.Clean(nameOf(m)) == filepath.Clean(r.dir)
		if off, ok := valueAt(m.Value, "disabledMcpServers"); ok && here {
			for _, el := range elementsOf(off) {
				s, _ := textOf(el)
				disabled = append(disabled, s)
			}
		}
		switch {
		case len(membersOf(v)) == 0:
		// The servers of other directories do not count in this one.
		case !here:
			if others++; others == 1 {
				at = m.Name.StartOffset
			}
		default:
			for _, s := range membersOf(v) {
				own = append(own, nameOf(s))
			}
		}
	}
	// The file names disabled servers beside the entries, and config reads the key of the entry.
	switchOff := func(name string, e *entry) bool {
		if slices.Contains(disabled, name) {
			e.addMember("disabled", e.offset, boolValue(true, e.offset))
		}
		return true
	}
	// The dropped entry gets a warning, so that the person sees why its settings have no effect.
	if v, ok := valueAt(r.tree.Root, "mcpServers"); ok {
		r.addServers("mcpServers", v, func(name string, e *entry) bool {
			if slices.Contains(own, name) {
				e.warnLost(e.offset, "", "the server of the same name of this project wins", "")
				return false
			}
			return switchOff(name, e)
		})
	}
	for _, m := range membersOf(projects) {
		if v, ok := valueAt(m.Value, "mcpServers"); ok && r.dir != "" && filepath.Clean(nameOf(m)) == filepath.Clean(r.dir) {
			r.addServers("projects."+nameOf(m)+".mcpServers", v, switchOff)
		}
	}
	// One warning for all other projects, at the first of them, because the file holds every directory in which Claude
	// Code was used.
	if others > 0 {
		what := "another project has servers, which"
		if others > 1 {
			what = fmt.Sprintf("%d other projects have servers, which", others)
		}
		r.addProblem(at, "", "projects", what+" count only in their own directories", "", true)
	}
}
