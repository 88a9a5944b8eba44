package config

import "strings"

// policyKey is the key of a managed file under which its policy stands.
const policyKey = "policy"

// policy reads the lists of a managed file. One that cannot be read allows nothing: a mistake in it must not open what
// it was to close.
func (r *reader) policy(v value, source string) *Policy {
	p := &Policy{Source: source}
	lists := map[string]*[]string{
		"allowCommands": &p.AllowCommands, "denyCommands": &p.DenyCommands,
		"allowEnv": &p.AllowEnv, "allowCwd": &p.AllowCwd, "allowURLs": &p.AllowURLs, "denyURLs": &p.DenyURLs,
	}
	names := []string{"allowCommands", "denyCommands", "allowEnv", "allowCwd", "allowURLs", "denyURLs"}
	own := &reader{file: r.file, src: r.src, at: map[string]Pos{}}
	const example = `write {"allowCommands": ["npx"], "denyURLs": ["*.example.com"]}`
	ok := own.object(v, example, func(key string, at Pos, m value) {
		into, known := lists[key]
		switch {
		case isRemark(key):
		case !known:
			own.report(at, m.key, "this version does not know the list", "known are "+strings.Join(names, ", "))
			if near := nearest(key, names); near != "" {
				own.problems[len(own.problems)-1].Fix = "did you mean " + near + "?"
			}
		default:
			if l, good := own.list(m, `write ["npx", "*.example.com"]`, own.text); good {
				*into = l
			}
		}
	})
	r.problems = append(r.problems, own.problems...)
	if !ok || invalid(own.problems) != "" {
		p.AllowCommands, p.AllowURLs = []string{}, []string{}
	}
	return p
}
