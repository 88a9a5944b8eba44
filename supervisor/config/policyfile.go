package config

import "strings"

// policyKey names the key of a managed file under which its policy stands.
const policyKey = "policy"

// readPolicy reads the lists of a managed file; source stands in refusals. If any part cannot be read the policy allows no
// command and no URL: the organisation wanted a restriction, and a mistake in it must not remove it.
func (r *reader) readPolicy(v value, source string) *Policy {
	p := &Policy{Source: source}
	// The map finds a list by its key, and names keeps the documented order for the message.
	lists := map[string]*[]string{
		"allowCommands": &p.AllowCommands, "denyCommands": &p.DenyCommands,
		"allowEnv": &p.AllowEnv, "allowCwd": &p.AllowCwd, "allowURLs": &p.AllowURLs, "denyURLs": &p.DenyURLs,
	}
	names := []string{"allowCommands", "denyCommands", "allowEnv", "allowCwd", "allowURLs", "denyURLs"}
	// A reader of its own collects the problems, so that they show whether this policy could be read.
	own := &reader{file: r.file, src: r.src, positions: map[string]Pos{}}
	const example = `write {"allowCommands": ["npx"], "denyURLs": ["*.example.com"]}`
	ok := own.readObject(v, example, func(key string, at Pos, m value) {
		into, known := lists[key]
		switch {
		case isRemark(key):
		case !known:
			// A list of a later version may forbid what this version would allow.
			own.addProblem(at, m.key, "this version does not know the list", "known are "+strings.Join(names, ", "))
			if near := nearestKey(key, names); near != "" {
				own.problems[len(own.problems)-1].Fix = "did you mean " + near + "?"
			}
		default:
			if l, good := own.readList(m, `write ["npx", "*.example.com"]`, own.readText); good {
				*into = l
			}
		}
	})
	r.problems = append(r.problems, own.problems...)
	// Empty lists that are not nil allow nothing.
	if !ok || invalidText(own.problems) != "" {
		p.AllowCommands, p.AllowURLs = []string{}, []string{}
	}
	return p
}
