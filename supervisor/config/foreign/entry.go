package foreign

import (
	"fmt"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// entry is one server of another program's file on its way into our keys.
type entry struct {
	*fileReading
	name string
	// offset is where the name stands.
	offset  int
	members []hujson.ObjectMember
}

func (e *entry) indexOf(key string) int {
	return slices.IndexFunc(e.members, func(m hujson.ObjectMember) bool { return nameOf(m) == key && !isNull(m.Value) })
}

// hasAnyKey reports whether the entry has one of the keys, with a value that is not null.
func (e *entry) hasAnyKey(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return e.indexOf(key) >= 0 })
}

// findMember is the member under a key, to be changed in place; nil if there is none.
func (e *entry) findMember(key string) *hujson.ObjectMember {
	if i := e.indexOf(key); i >= 0 {
		return &e.members[i]
	}
	return nil
}

// takeMember removes the member under a key and gives its value.
func (e *entry) takeMember(key string) (v hujson.ObjectMember, ok bool) {
	i := e.indexOf(key)
	if i < 0 {
		return v, false
	}
	v = e.members[i]
	e.members = slices.Delete(e.members, i, i+1)
	return v, true
}

// addMember puts a member at the end. The reader says so if it contradicts another one.
func (e *entry) addMember(name string, at int, v hujson.Value) {
	e.members = append(e.members, newMember(name, at, v))
}

// mergeInto puts members into the object under a key, which is made if it is missing. What is there already wins.
func (e *entry) mergeInto(key string, at int, more ...hujson.ObjectMember) {
	m := e.findMember(key)
	if m == nil {
		e.addMember(key, at, objectValue(at, more...))
		return
	}
	o, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		return // the reader reports it
	}
	merged, there := &hujson.Object{}, map[string]bool{}
	for _, n := range slices.Concat(o.Members, more) {
		if name := nameOf(n); !there[name] || len(merged.Members) < len(o.Members) {
			there[name] = true
			merged.Members = append(merged.Members, n)
		}
	}
	m.Value.Value = merged
}

// renameKey gives the member under one key another one, unless that is there.
func (e *entry) renameKey(from, to string) {
	if m := e.findMember(from); m != nil && !e.hasAnyKey(to) {
		e.tree.Spelled[m.Name.StartOffset] = from
		m.Name = textValue(to, m.Name.StartOffset)
	}
}

// warnLost says that something of the entry is not carried over, and that the server works all the same.
func (e *entry) warnLost(at int, key, what, fix string) {
	e.addProblem(at, e.name, key, what, fix, true)
}

// standIn is lose for something whose place a variable takes here.
func (e *entry) standIn(at int, key, what, variable string) {
	e.warnLost(at, key, what, "set "+variable)
	for i := range e.problems {
		if p := &e.problems[i]; p.Server == e.name && p.Key == key && p.Text == what {
			p.Variable = variable
		}
	}
}

// reportUnusable says why the server cannot work.
func (e *entry) reportUnusable(at int, key, what, fix string) {
	e.addProblem(at, e.name, key, what, fix, false)
}

// liftTransport makes members of the entry of those of an object under transport: {"type": "http", "url": "…"}.
func (e *entry) liftTransport() {
	m := e.findMember("transport")
	if m == nil || len(membersOf(m.Value)) == 0 {
		return
	}
	lifted, _ := e.takeMember("transport")
	for _, part := range membersOf(lifted.Value) {
		if key := nameOf(part); !isNull(part.Value) && !e.hasAnyKey(key) {
			e.tree.Spelled[part.Name.StartOffset] = "transport." + key
			e.members = append(e.members, part)
		}
	}
}

// onlyHTTP makes a URL without a type streamable HTTP, for programs that speak nothing else.
func (e *entry) onlyHTTP() {
	if m := e.findMember("url"); m != nil && !e.hasAnyKey("type", "transport") {
		e.addMember("type", m.Name.StartOffset, textValue("http", m.Name.StartOffset))
	}
}

// addSecondsUnit gives a number of seconds under a key its unit.
func (e *entry) addSecondsUnit(key string) {
	m := e.findMember(key)
	if m == nil || !isNumber(m.Value) {
		return
	}
	m.Value = textValue(m.Value.Value.(hujson.Literal).String()+"s", m.Value.StartOffset)
}

// fromVariables gives the process the variables of a list under key, each by its own name. said, if not empty, is what
// the program does with them.
func (e *entry) fromVariables(key, env, said string) {
	list, ok := e.takeMember(key)
	if !ok {
		return
	}
	if _, isList := list.Value.Value.(*hujson.Array); !isList {
		e.reportUnusable(list.Value.StartOffset, key, "it is no list of names", `write ["NAME"]`)
		return
	}
	var given []hujson.ObjectMember
	for i, el := range elementsOf(list.Value) {
		if i == config.MaxList {
			e.reportUnusable(el.StartOffset, key, "the list is longer than can be read", "")
			break
		}
		name, isText := textOf(el)
		if m := memberOf(el, "name"); !isText && m != nil {
			name, isText = textOf(m.Value)
			if source, ok := valueAt(el, "source"); ok {
				if s, _ := textOf(source); s != "local" && s != "" {
					e.warnLost(el.StartOffset, fmt.Sprintf("%s[%d]", key, i), "the variable of another machine is not carried over",
						"set it here and write it into "+env)
					continue
				}
			}
		}
		if !isText || !isName(name) {
			e.reportUnusable(el.StartOffset, fmt.Sprintf("%s[%d]", key, i), "it is no name of a variable", `write "NAME"`)
			continue
		}
		if said != "" {
			e.standIn(el.StartOffset, fmt.Sprintf("%s[%d]", key, i), said, name)
		}
		given = append(given, newMember(name, el.StartOffset, textValue("${"+name+"}", el.StartOffset)))
	}
	if len(given) > 0 {
		e.mergeInto(env, given[0].Name.StartOffset, given...)
	}
}

// allTools makes an empty list under key, and one that names "*", mean every tool, and calls the rest what we do.
func (e *entry) allTools(key string, emptyIsAll bool) {
	m := e.findMember(key)
	if m == nil {
		return
	}
	list, ok := m.Value.Value.(*hujson.Array)
	if !ok {
		return
	}
	star := slices.ContainsFunc(list.Elements, func(v hujson.Value) bool { s, _ := textOf(v); return s == "*" })
	if star || emptyIsAll && len(list.Elements) == 0 {
		e.takeMember(key)
		return
	}
	e.renameKey(key, "enabledTools")
}

// isName reports whether s can be the name of a variable in ${…}.
func isName(s string) bool {
	for i, c := range s {
		if !(c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}
