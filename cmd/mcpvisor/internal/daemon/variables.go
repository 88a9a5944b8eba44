package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// variables are the values of an agent's environment that a part of the daemon uses. They do not change.
type variables map[string]string

// lookup returns a value, and whether it is set.
func (v variables) lookup(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// asking is what an agent has given: its values of variables, and the directories of its programs.
type asking struct {
	given   map[string]string
	ownPath string
}

// wanted are the names of variables that the approved entries of a directory mention.
type wanted struct {
	// byServer has them for each server. users are those of the user's entries, and all those of all, sorted.
	byServer   map[string][]string
	users, all []string
}

// wantedVariables finds the variables that a configuration mentions. Entries that wait for an approval are not asked: an agent's values
// are not for them.
func wantedVariables(found discover.Configuration) wanted {
	w := wanted{byServer: map[string][]string{}}
	users, all := map[string]bool{}, map[string]bool{}
	for _, f := range found.Snapshot.Files {
		p := found.Snapshot.Parse(f)
		for name := range p.Servers {
			spec := found.Specs[name]
			if spec.Hold != "" || spec.Disabled || spec.Source != p.Path {
				continue
			}
			w.byServer[name] = config.VariablesOf(p, name, found.Snapshot.Context)
			for _, variable := range w.byServer[name] {
				all[variable] = true
				users[variable] = users[variable] || isShareable(spec)
			}
		}
	}
	maps.DeleteFunc(users, func(_ string, mentioned bool) bool { return !mentioned })
	w.users, w.all = slices.Sorted(maps.Keys(users)), slices.Sorted(maps.Keys(all))
	return w
}

// isShareable reports whether a server belongs to no project.
func isShareable(spec messages.Spec) bool {
	return spec.Scope == messages.ScopeUser || spec.Scope == messages.ScopeManaged
}

// valuesOf returns the values of the named variables.
func valuesOf(names []string, given map[string]string) variables {
	out := variables{}
	for _, name := range names {
		if v, ok := given[name]; ok {
			out[name] = v
		}
	}
	return out
}

// instanceOf returns what tells apart the instances of a part: the values that its servers mention, and their programs.
func instanceOf(specs map[string]messages.Spec, want wanted, a asking) string {
	var names []string
	for name := range specs {
		names = append(names, want.byServer[name]...)
	}
	values := valuesOf(names, a.given)
	find := programsOf(a.ownPath)
	for name, spec := range specs {
		if command := config.CommandToFind(spec); command != "" {
			values["program of "+name] = find(command) // no variable has a name with a space
		}
	}
	return hashOf(values)
}

// hashOf tells sets of values apart. It is no secret's stand-in: it never leaves the process.
func hashOf(values variables) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(h, "%q=%q\n", name, values[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}
