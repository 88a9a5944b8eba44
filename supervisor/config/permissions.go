package config

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// permissionsKey is a key of a file, beside its servers: which tools may be called.
const permissionsKey = "permissions"

// foreignKeys stand under permissions in the settings of Claude Code, and say nothing of tools.
var foreignKeys = []string{"defaultMode", "additionalDirectories", "disableBypassPermissionsMode", "disableAutoMode"}

// unknownServerRules are the rules that name no server which is configured, and one that is nearly called so. A rule about a server of
// another project is none of them.
func unknownServerRules(rules access.Rules, names []string) (problems []Problem) {
	strange := 0
	for _, rule := range slices.Concat(rules.Managed.Rules, rules.Own.Rules) {
		server, ok := rule.Server()
		if !ok || slices.ContainsFunc(names, rule.Concerns) {
			continue
		}
		if strange++; strange > maxComparedRules {
			break
		}
		if near := nearestKey(server, names); near != "" {
			problems = append(problems, Problem{File: rule.Source.File, Line: rule.Source.Line, Col: rule.Source.Col,
				Key: permissionsKey + "." + string(rule.Verdict), Text: "the rule " + messages.Line(rule.Text, 80) + " names a server " +
					quoteShort(messages.Line(server, 60)) + ", and none is configured so", Fix: "did you mean " + quoteShort(messages.Line(near, 60)) + "?",
				Warning: true})
		}
	}
	return problems
}

// maxComparedRules bounds the rules that are compared with all names: a file of a project may hold thousands of both.
const maxComparedRules = 100

// readPermissions reads {"allow": [], "ask": [], "deny": [], "default": "ask"}.
//
// What cannot be read, other than an allow, denies everything until it can: a mistake in it must not open what it was to
// close. A file that was merely found in a project can only restrict: it may be somebody else's work, and nobody approved
// it.
func (r *reader) readPermissions(v value, p *Parsed) {
	const example = `write {"deny": ["mcp__github__delete_*"], "ask": [], "allow": [], "default": "ask"}`
	set := access.Set{}
	keys := []string{"allow", "ask", "deny", "default"}
	own := &reader{file: r.file, src: r.src, positions: map[string]Pos{}}
	source := func(at Pos) access.Source {
		return access.Source{File: p.Path, Line: at.Line, Col: at.Col, Scope: p.Scope}
	}
	closed := func(text string, at Pos) { set.Rules = append(set.Rules, access.Unreadable(text, source(at))) }
	read := own.readObject(v, example, func(key string, at Pos, m value) {
		switch {
		case isRemark(key):
		case key == "default":
			own.readDefault(m, merelyFound(p.Scope), source, &set, closed)
		case slices.Contains(foreignKeys, key):
			own.addWarning(at, m.key, "the key is about Claude Code itself, and is not read", "remove it")
		case !slices.Contains(keys, key):
			own.addProblem(at, m.key, "this version does not know the key", "known are allow, ask, deny and default")
			if near := nearestKey(key, keys); near != "" {
				own.problems[len(own.problems)-1].Fix = "did you mean " + near + "?"
			}
			closed(key, at)
		case key == "allow" && merelyFound(p.Scope):
			own.addWarning(at, m.key, "a project file can restrict and not allow; its allow rules are dropped",
				"put them into your own file, or name this file with --config")
		default:
			own.readRules(access.Verdict(key), m, source, &set, closed)
		}
	})
	if !read {
		closed(permissionsKey, r.posOf(v.Value))
	}
	r.problems = append(r.problems, own.problems...)
	if p.Permissions != nil { // the key stands twice, which is reported where the file is read
		set.Rules = append(set.Rules, p.Permissions.Rules...)
		set.Default = access.Stricter(set.Default, p.Permissions.Default)
	}
	p.Permissions = &set
}

func (r *reader) readDefault(v value, found bool, source func(Pos) access.Source, set *access.Set, closed func(string, Pos)) {
	at := r.posOf(v.Value)
	var word string
	ok := r.readText(v, &word)
	switch verdict := access.Verdict(word); {
	case !ok:
		closed("default", at)
	case verdict == access.Allow && found:
		r.addWarning(at, v.key, "a project file can restrict and not allow; the key is dropped", "put it into your own file")
	case verdict == access.Allow, verdict == access.Ask, verdict == access.Deny:
		set.Default, set.DefaultSource = verdict, source(at)
	default:
		r.addProblem(at, v.key, "unknown value "+quoteShort(messages.Line(word, 40)), "write allow, ask or deny")
		closed("default", at)
	}
}

func (r *reader) readRules(verdict access.Verdict, v value, source func(Pos) access.Source, set *access.Set,
	closed func(string, Pos),
) {
	list, ok := v.Value.Value.(*hujson.Array)
	if !ok {
		r.reportType(v, "a list", `write ["mcp__github", "mcp__fs__write(path:docs/*)"]`)
		if verdict != access.Allow {
			closed(string(verdict), r.posOf(v.Value))
		}
		return
	}
	for i, el := range list.Elements {
		at := r.posOf(el)
		if i == MaxList {
			r.addProblem(at, v.key, fmt.Sprintf("the list has more than %d rules, and the rest is not read", MaxList), "use patterns")
			if verdict != access.Allow {
				closed(string(verdict), at)
			}
			break
		}
		l, ok := literalOf(el)
		text := ""
		if ok && l.Kind() == '"' {
			text = l.String()
		} else {
			r.addProblem(at, v.key, "found "+kindName(el.Value.Kind())+" instead of a rule in quotes", `write "mcp__github"`)
			ok = false
		}
		if ok {
			rule, err := access.Parse(verdict, text)
			bad, isBad := err.(*access.ParseError) //nolint:errorlint // it is never wrapped
			switch {
			case isBad && bad.Foreign:
				r.addWarning(at, v.key, quoteShort(bad.Rule)+": "+bad.Text+"; the rule is not read", bad.Fix)
				continue
			case isBad:
				r.addProblem(at, v.key, quoteShort(bad.Rule)+": "+bad.Text, bad.Fix)
				ok = false
			default:
				rule.Source = source(at)
				set.Rules = append(set.Rules, rule)
			}
		}
		if !ok && verdict != access.Allow {
			closed(cmp.Or(text, string(verdict)), at)
		}
	}
}

// merelyFound reports whether files of a scope lie in a project, where a repository may have put them.
func merelyFound(s messages.Scope) bool {
	return s == messages.ScopeProject || s == messages.ScopeLocal
}

// permissionsOf joins the rules of all files, lowest precedence first. Of several defaults of the person's own files the
// last one counts, made stricter by those of the project.
func permissionsOf(files []Parsed) (all access.Rules) {
	var project access.Set
	for _, f := range files {
		p := f.Permissions
		if p == nil {
			continue
		}
		into := &all.Own
		if f.Scope == messages.ScopeManaged {
			into = &all.Managed
		}
		into.Rules = append(into.Rules, p.Rules...)
		switch {
		case p.Default == "":
		case merelyFound(f.Scope):
			if access.Stricter(project.Default, p.Default) != project.Default {
				project.Default, project.DefaultSource = p.Default, p.DefaultSource
			}
		default:
			into.Default, into.DefaultSource = p.Default, p.DefaultSource
		}
	}
	if access.Stricter(all.Own.Default, project.Default) != all.Own.Default {
		all.Own.Default, all.Own.DefaultSource = project.Default, project.DefaultSource
	}
	return all
}
