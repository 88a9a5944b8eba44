package sim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ownerSet is the set of servers by the owner's commands, in their order. It says what the answer to each further set must be.
// Only the loop uses it.
type ownerSet struct {
	specs map[string]messages.Spec
	// leaving are the servers that were removed and of which the manager has not said that they are gone. One that is added again
	// meanwhile is new to the manager in every set, until it is there.
	leaving map[string]bool
}

// addServer notes a server that was added, or described anew.
func (o *ownerSet) addServer(name string, spec messages.Spec) {
	if o.specs == nil {
		o.specs = map[string]messages.Spec{}
	}
	o.specs[name] = spec
}

// removeServer notes a server that was removed.
func (o *ownerSet) removeServer(name string) {
	if _, known := o.specs[name]; !known {
		return
	}
	delete(o.specs, name)
	if o.leaving == nil {
		o.leaving = map[string]bool{}
	}
	o.leaving[name] = true
}

// replaceAll notes that the owner gave the whole set, and returns the check of the answer: it returns what is wrong with it,
// empty if nothing is.
func (o *ownerSet) replaceAll(specs map[string]messages.Spec) func(messages.SetServersResult) string {
	var want messages.SetServersResult
	unsure := maps.Clone(o.leaving)
	for name := range o.specs {
		if _, stays := specs[name]; !stays {
			want.Removed = append(want.Removed, name)
		}
	}
	for name, spec := range specs {
		switch was, known := o.specs[name]; {
		case !known:
			want.Added = append(want.Added, name)
		case was.Equal(spec):
			want.Kept = append(want.Kept, name)
		case was.SameConnection(spec):
			want.Adjusted = append(want.Adjusted, name)
		default:
			want.Removed, want.Added = append(want.Removed, name), append(want.Added, name)
		}
	}
	for _, name := range want.Removed {
		o.removeServer(name)
	}
	for name, spec := range specs {
		o.addServer(name, spec)
	}
	return func(got messages.SetServersResult) string {
		if len(got.Errors) > 0 {
			return fmt.Sprintf("the set of servers is answered with the errors %v", got.Errors)
		}
		for _, list := range []struct {
			word      string
			got, want []string
		}{{"added", got.Added, want.Added}, {"removed", got.Removed, want.Removed}, {"adjusted", got.Adjusted, want.Adjusted}, {"kept", got.Kept, want.Kept}} {
			said, right := sureNames(list.got, unsure), sureNames(list.want, unsure)
			if !slices.Equal(said, right) {
				return fmt.Sprintf("the answer to a set of servers says that it has %s %q, and by the commands before it these are %q", list.word, said, right)
			}
		}
		return ""
	}
}

// sureNames returns the names that are not in the set, sorted.
func sureNames(names []string, without map[string]bool) []string {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return without[name] })
	slices.Sort(names)
	return names
}
