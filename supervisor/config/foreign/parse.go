package foreign

import (
	"slices"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// Context holds everything besides its text that the meaning of a file depends on.
type Context struct {
	// Dir is the directory in which the person works: Claude Code keeps servers of each directory in one file.
	Dir string
	// Format is whose file it is; empty: it is found out.
	Format Format
}

// Parse reads one file of any known program. The result is as that of config.Parse, with Program set if the file is not in
// our own form.
func Parse(f config.File, ctx Context) config.Parsed {
	if f.Err != "" {
		return config.Parse(f)
	}
	tree, syntax, bad := readTree(f)
	format := ctx.Format
	if bad == nil && format == Own {
		format = detectFormat(f.Path, syntax, tree.Root)
	}
	switch {
	case bad != nil && syntax == inJSON, format == Own && syntax == inJSON:
		return config.Parse(f)
	case bad != nil:
		return brokenFile(f, titles[syntax], *bad)
	case format == Own:
		return brokenFile(f, "", config.Problem{File: f.Path, Line: 1, Col: 1, Text: "no MCP servers are found in this " + string(syntax) + " file",
			Fix: "Codex has [mcp_servers.NAME], Goose has extensions:"})
	}
	if kind := tree.Root.Value.Kind(); kind != '{' {
		if syntax == inJSON {
			return config.Parse(f)
		}
		at := tree.Pos(tree.Root.StartOffset)
		return brokenFile(f, titles[syntax], config.Problem{File: f.Path, Line: at.Line, Col: at.Col, Text: "the file holds no keys and values"})
	}
	r := &fileReading{file: f.Path, syntax: syntax, tree: tree, program: programs[format], dir: ctx.Dir}
	r.tree.Spelled = map[int]string{}
	r.findSections()
	if len(r.foundSections) == 0 && !r.settings && syntax == inJSON {
		return config.Parse(f) // which says what stands where no server should
	}
	return config.ParseSections(f, r.title, r.tree, r.foundSections, r.problems)
}

func (r *fileReading) findSections() { r.program.sections(r) }

// titles are whose file it must be that is written so and cannot be read.
var titles = map[syntax]string{inTOML: "Codex", inYAML: "Goose"}

func brokenFile(f config.File, program string, p config.Problem) config.Parsed {
	return config.Parsed{Path: f.Path, Scope: f.Scope, Dir: f.Dir, Program: program, Servers: map[string]config.Entry{},
		Problems: []config.Problem{p}, Broken: true}
}

// fileReading is one file while it is read.
type fileReading struct {
	program
	file   string
	syntax syntax
	tree   config.Tree
	dir    string
	// inputs are the values that VS Code asks a person for, by their id.
	inputs map[string]hujson.Value
	// builtins are the extensions that are parts of Goose itself, and switched on.
	builtins      []*entry
	foundSections []config.Section
	problems      []config.Problem
}

// addProblem adds a problem. server and key may be empty.
func (r *fileReading) addProblem(at int, server, key, what, fix string, warning bool) {
	p := r.tree.Pos(at)
	problem := config.Problem{File: r.file, Line: p.Line, Col: p.Col, Server: server, Key: key, Text: what, Fix: fix,
		Warning: warning}
	if !slices.Contains(r.problems, problem) {
		r.problems = append(r.problems, problem)
	}
}

// addServers rewrites a list of servers, which stands under key, and adds it to what was found. keep, if not nil, decides by
// name which entries count.
func (r *fileReading) addServers(key string, v hujson.Value, keep func(name string, e *entry) bool) {
	switch list := v.Value.(type) {
	case *hujson.Object:
		out := &hujson.Object{}
		for _, m := range list.Members {
			if rewritten, ok := r.rewriteEntry(nameOf(m), m.Name.StartOffset, m.Value, keep); ok {
				out.Members = append(out.Members, hujson.ObjectMember{Name: m.Name, Value: rewritten})
			}
		}
		v.Value = out
	case *hujson.Array:
		out := &hujson.Array{}
		for _, el := range list.Elements {
			name := ""
			if m := memberOf(el, "name"); m != nil {
				name, _ = textOf(m.Value)
			}
			if rewritten, ok := r.rewriteEntry(name, el.StartOffset, el, keep); ok {
				out.Elements = append(out.Elements, rewritten)
			}
		}
		v.Value = out
	}
	r.foundSections = append(r.foundSections, config.Section{Key: key, Value: v})
}

// rewriteEntry makes one entry ours. What is no object stays as it is, for the reader to say so.
func (r *fileReading) rewriteEntry(name string, at int, v hujson.Value, keep func(string, *entry) bool) (hujson.Value, bool) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return v, !isNull(v)
	}
	e := &entry{fileReading: r, name: name, offset: at, members: slices.Clone(o.Members)}
	e.liftTransport()
	if keep != nil && !keep(name, e) || !r.entry(e) {
		return v, false
	}
	if r.words != nil {
		e.translateVariables()
	}
	return hujson.Value{Value: &hujson.Object{Members: e.members}, StartOffset: v.StartOffset, EndOffset: v.EndOffset}, true
}

// quoteName is a name for a sentence.
func quoteName(s string) string { return `"` + messages.Line(s, 60) + `"` }
