package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// permissionsKey names a key of a file, beside its servers: which tools may be called.
const permissionsKey = "permissions"

// foreignKeys holds the keys that stand under permissions in the settings of Claude Code and do not concern tools.
var foreignKeys = []string{"defaultMode", "additionalDirectories", "disableBypassPermissionsMode", "disableAutoMode"}

// unknownServerWarnings warns about rules, and about servers of views, that name no configured server and whose name is close to that of
// one. An entirely different name gets no warning, because that server may be configured in another project.
func unknownServerWarnings(rules access.Rules, gateway *Gateway, names []string) (problems []Problem) {
	strange := 0
	warn := func(server string, at Problem) {
		if strange++; strange > maxComparedRules {
			return
		}
		if near := nearestKey(server, names); near != "" {
			at.Text += " names a server " + quoteShort(messages.Line(server, 60)) + ", and none is configured so"
			at.Fix, at.Warning = "did you mean "+quoteShort(messages.Line(near, 60))+"?", true
			problems = append(problems, at)
		}
	}
	warnRules := func(rules []access.Rule, key string) {
		for _, rule := range rules {
			if server, ok := rule.Server(); ok && !slices.ContainsFunc(names, rule.Concerns) {
				warn(server, Problem{File: rule.Source.File, Line: rule.Source.Line, Col: rule.Source.Col, Key: key + "." + string(rule.Verdict),
					Text: "the rule " + messages.Line(rule.Text, 80)})
			}
		}
	}
	warnRules(slices.Concat(rules.Managed.Rules, rules.Own.Rules), permissionsKey)
	if gateway == nil {
		return problems
	}
	for _, name := range slices.Sorted(maps.Keys(gateway.Views)) {
		view, key := gateway.Views[name], gatewayKey+".views."+name
		warnRules(view.Rules.Rules, key)
		for _, server := range view.Servers {
			if !slices.Contains(names, server) {
				warn(server, Problem{File: gateway.Source, Line: view.serversAt.Line, Col: view.serversAt.Col, Key: key + ".servers", Text: "the list"})
			}
		}
	}
	return problems
}

// maxComparedRules bounds the rules that are compared with all names, because a file of a project may hold thousands of both
// and each comparison costs an edit distance.
const maxComparedRules = 100

// readPermissions reads {"allow": [], "ask": [], "deny": [], "default": "ask"}.
//
// A part that cannot be read, other than an allow, denies every tool until it can: the author wanted a restriction, and a
// mistake in it must not remove it. A file that was merely found in a project can only restrict, because it may be a stranger's
// work and an approval covers its servers, not its permissions.
func (r *reader) readPermissions(v value, p *Parsed) {
	const example = `write {"deny": ["mcp__github__delete_*"], "ask": [], "allow": [], "default": "ask"}`
	set := access.Set{}
	keys := []string{"allow", "ask", "deny", "default"}
	// The problems are collected in a reader of their own because the reader of the file has no map for the places.
	own := &reader{file: r.file, src: r.src, positions: map[string]Pos{}}
	source := func(at Pos) access.Source {
		return access.Source{File: p.Path, Line: at.Line, Col: at.Col, Scope: p.Scope}
	}
	// closed adds the rule that denies everything, with the place of the text that could not be read.
	closed := func(text string, at Pos) { set.Rules = append(set.Rules, access.Unreadable(text, source(at))) }
	read := own.readObject(v, example, func(key string, at Pos, m value) {
		switch {
		case isRemark(key):
		case key == "default":
			own.readDefault(m, merelyFound(p.Scope), source, &set, closed)
		// The file may be shared with Claude Code.
		case slices.Contains(foreignKeys, key):
			own.addWarning(at, m.key, "the key is about Claude Code itself, and is not read", "remove it")
		// A later version may have a stricter key of this name, so that it counts as unreadable.
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
	// The value is no object at all.
	if !read {
		closed(permissionsKey, r.posOf(v.Value))
	}
	r.problems = append(r.problems, own.problems...)
	// The key stands twice, which readServers reports. Both count until the person has removed one, so that no restriction is
	// lost.
	if p.Permissions != nil {
		set.Rules = append(set.Rules, p.Permissions.Rules...)
		set.Default = access.Stricter(set.Default, p.Permissions.Default)
	}
	p.Permissions = &set
}

// readDefault reads the verdict for tools that no rule names. found means that the file lies in a project and may not set
// allow.
func (r *reader) readDefault(v value, found bool, source func(Pos) access.Source, set *access.Set, closed func(string, Pos)) {
	at := r.posOf(v.Value)
	var word string
	ok := r.readText(v, &word)
	switch verdict := access.Verdict(word); {
	case !ok:
		closed("default", at)
	// Dropping the key leaves the person's own default in force.
	case verdict == access.Allow && found:
		r.addWarning(at, v.key, "a project file can restrict and not allow; the key is dropped", "put it into your own file")
	case verdict == access.Allow, verdict == access.Ask, verdict == access.Deny:
		set.Default, set.DefaultSource = verdict, source(at)
	default:
		r.addProblem(at, v.key, "unknown value "+quoteShort(messages.Line(word, 40)), "write allow, ask or deny")
		closed("default", at)
	}
}

// readRules reads a list of rules with one verdict into set. A rule that cannot be parsed calls closed unless the verdict is
// allow, whose loss only restricts.
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
		// What is cut off may have been a restriction, so that the rest counts as unreadable.
		if i == MaxList {
			r.addProblem(at, v.key, fmt.Sprintf("the list has more than %d rules, and the rest is not read", MaxList), "use patterns")
			if verdict != access.Allow {
				closed(string(verdict), at)
			}
			break
		}
		// A rule that is no text has no words to show, and counts by its verdict alone.
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
			// The rule is about a tool of Claude Code itself ("Bash(git:*)"), which mcpvisor never offers, so that leaving it
			// out opens nothing.
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

// merelyFound reports whether files of a scope lie in a project, where a repository may have put them. Their entries need an
// approval, and their settings can only restrict.
func merelyFound(s messages.Scope) bool {
	return s == messages.ScopeProject || s == messages.ScopeLocal
}

// permissionsOf joins the rules of all files, which come lowest precedence first. Of the defaults in the person's own files the
// last one counts; a project's default counts only where it is stricter. The rules of managed files stay apart, because no
// other rule overrides them.
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
		// Several files of the project join to the strictest default among them.
		case merelyFound(f.Scope):
			if access.Stricter(project.Default, p.Default) != project.Default {
				project.Default, project.DefaultSource = p.Default, p.DefaultSource
			}
		default:
			into.Default, into.DefaultSource = p.Default, p.DefaultSource
		}
	}
	// The person's own default stays unless the project's is stricter.
	if access.Stricter(all.Own.Default, project.Default) != all.Own.Default {
		all.Own.Default, all.Own.DefaultSource = project.Default, project.DefaultSource
	}
	return all
}
