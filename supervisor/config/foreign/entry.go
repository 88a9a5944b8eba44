package foreign

import (
	"fmt"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// entry is one server of another program's file while it is rewritten into the keys of config.
type entry struct {
	*fileReading
	// name may be empty in a list, and the reader then reports it.
	name string
	// offset is the byte offset of the name. Made-up members stand there, too.
	offset int
	// members belongs to the entry alone: rewriteEntry clones the list, because the file's tree is shared.
	members []hujson.ObjectMember
}

// indexOf returns the index of the member under a key, or -1. A member with null counts as absent.
func (e *entry) indexOf(key string) int {
	return slices.IndexFunc(e.members, func(m hujson.ObjectMember) bool { return nameOf(m) == key && !isNull(m.Value) })
}

// hasAnyKey reports whether the entry has one of the keys, with a value that is not null.
func (e *entry) hasAnyKey(keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return e.indexOf(key) >= 0 })
}

// findMember returns the member under a key, to be changed in place until members are added or removed; nil if there is
// none.
func (e *entry) findMember(key string) *hujson.ObjectMember {
	if i := e.indexOf(key); i >= 0 {
		return &e.members[i]
	}
	return nil
}

// takeMember removes the member under a key and returns it, so that the reader of config never sees it.
func (e *entry) takeMember(key string) (v hujson.ObjectMember, ok bool) {
	i := e.indexOf(key)
	if i < 0 {
		return v, false
	}
	v = e.members[i]
	e.members = slices.Delete(e.members, i, i+1)
	return v, true
}

// addMember appends a member. If another key of the same meaning contradicts it, the reader of config reports both.
func (e *entry) addMember(name string, at int, v hujson.Value) {
	e.members = append(e.members, newMember(name, at, v))
}

// mergeInto adds members to the object under a key, and makes that object if it is missing. Members that are there
// already win.
func (e *entry) mergeInto(key string, at int, more ...hujson.ObjectMember) {
	m := e.findMember(key)
	if m == nil {
		e.addMember(key, at, objectValue(at, more...))
		return
	}
	o, ok := m.Value.Value.(*hujson.Object)
	if !ok {
		// The reader of config reports a value that is no object.
		return
	}
	// A new object is built, because the one in the file's tree is shared.
	merged, there := &hujson.Object{}, map[string]bool{}
	for _, n := range slices.Concat(o.Members, more) {
		// Duplicates among the file's own members stay, so that the reader reports them; duplicates that would be added
		// are dropped.
		if name := nameOf(n); !there[name] || len(merged.Members) < len(o.Members) {
			there[name] = true
			merged.Members = append(merged.Members, n)
		}
	}
	m.Value.Value = merged
}

// renameKey gives the member under one key another name, unless the entry has that key already.
func (e *entry) renameKey(from, to string) {
	if m := e.findMember(from); m != nil && !e.hasAnyKey(to) {
		// Problems show the name that the file has.
		e.tree.Spelled[m.Name.StartOffset] = from
		m.Name = textValue(to, m.Name.StartOffset)
	}
}

// warnLost reports a part of the entry that is not carried over, while the server works all the same.
func (e *entry) warnLost(at int, key, what, fix string) {
	e.addProblem(at, e.name, key, what, fix, true)
}

// standIn reports, as warnLost does, a part whose place an environment variable takes. It sets Problem.Variable, by
// which Merge drops the warning once the variable is set.
func (e *entry) standIn(at int, key, what, variable string) {
	e.warnLost(at, key, what, "set "+variable)
	for i := range e.problems {
		if p := &e.problems[i]; p.Server == e.name && p.Key == key && p.Text == what {
			p.Variable = variable
		}
	}
}

// reportUnusable reports why the server cannot work; config makes the entry invalid.
func (e *entry) reportUnusable(at int, key, what, fix string) {
	e.addProblem(at, e.name, key, what, fix, false)
}

// liftTransport moves the members of an object under transport into the entry: {"transport": {"type": "http", "url":
// "…"}}. Keys of the entry itself win.
func (e *entry) liftTransport() {
	m := e.findMember("transport")
	// A word under transport stays for the reader of config.
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

// onlyHTTP gives a URL without a type the type http, for programs that speak no SSE. Without it config would set a
// fall-back to SSE.
func (e *entry) onlyHTTP() {
	// A type in the file always wins.
	if m := e.findMember("url"); m != nil && !e.hasAnyKey("type", "transport") {
		e.addMember("type", m.Name.StartOffset, textValue("http", m.Name.StartOffset))
	}
}

// addSecondsUnit writes the unit of seconds behind the number under a key, because config reads a bare number as
// milliseconds.
func (e *entry) addSecondsUnit(key string) {
	m := e.findMember(key)
	// A text already has its unit, or is reported by the reader.
	if m == nil || !isNumber(m.Value) {
		return
	}
	m.Value = textValue(m.Value.Value.(hujson.Literal).String()+"s", m.Value.StartOffset)
}

// fromVariables turns a list of names of variables under key into members NAME=${NAME} under env. said, if not empty,
// says what the program itself does with them and becomes a warning for each. A name may also stand in an object whose
// source says on which machine the variable is.
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
		// The reader bounds its own lists, and does not see this one.
		if i == config.MaxList {
			e.reportUnusable(el.StartOffset, key, "the list is longer than can be read", "")
			break
		}
		// Codex also has objects {name, source}.
		name, isText := textOf(el)
		if m := memberOf(el, "name"); !isText && m != nil {
			name, isText = textOf(m.Value)
			if source, ok := valueAt(el, "source"); ok {
				// A variable of a remote environment does not exist on this machine.
				if s, _ := textOf(source); s != "local" && s != "" {
					e.warnLost(el.StartOffset, fmt.Sprintf("%s[%d]", key, i), "the variable of another machine is not carried over",
						"set it here and write it into "+env)
					continue
				}
			}
		}
		// Another text could not be written as ${…}.
		if !isText || !isName(name) {
			e.reportUnusable(el.StartOffset, fmt.Sprintf("%s[%d]", key, i), "it is no name of a variable", `write "NAME"`)
			continue
		}
		if said != "" {
			e.standIn(el.StartOffset, fmt.Sprintf("%s[%d]", key, i), said, name)
		}
		// The value refers to the variable of the same name in the person's environment.
		given = append(given, newMember(name, el.StartOffset, textValue("${"+name+"}", el.StartOffset)))
	}
	// Variables that the entry sets to a value of its own win.
	if len(given) > 0 {
		e.mergeInto(env, given[0].Name.StartOffset, given...)
	}
}

// allTools removes a list of offered tools that means every tool: one with "*", and an empty one if emptyIsAll. In
// config an empty list allows none. Any other list becomes enabledTools.
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
