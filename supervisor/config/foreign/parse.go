package foreign

import (
	"slices"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// Context holds everything besides its text that the meaning of a file depends on.
type Context struct {
	// Dir is the directory in which the person works, by which Claude Code sorts servers in one file.
	Dir string
	// Format is the program whose form the file has; with Own, the zero value, Parse recognises it.
	Format Format
}

// Parse reads one file of any known program. The result is like that of config.Parse, with Program set if the file has
// another program's form. Files in mcpvisor's form, and JSON that cannot be read, are left to config.Parse, whose
// problems fit them better.
func Parse(f config.File, ctx Context) config.Parsed {
	if f.Err != "" {
		return config.Parse(f)
	}
	if ctx.Format != Own && holdsNothing(f.Data, ctx.Format.Syntax()) {
		return config.Parsed{Path: f.Path, Scope: f.Scope, Dir: f.Dir, Program: ctx.Format.Title(), Servers: map[string]config.Entry{}}
	}
	tree, syntax, bad := readTree(f)
	format := ctx.Format
	// The caller did not name the program.
	if bad == nil && format == Own {
		format = detectFormat(f.Path, syntax, tree.Root)
	}
	switch {
	case bad != nil && syntax == inJSON, format == Own && syntax == inJSON:
		return config.Parse(f)
	// The syntax tells the program: no other one has TOML or YAML.
	case bad != nil:
		return brokenFile(f, titles[syntax], *bad)
	case format == Own:
		return brokenFile(f, "", config.Problem{File: f.Path, Line: 1, Col: 1, Text: "no MCP servers are found in this " + string(syntax) + " file",
			Fix: "Codex has [mcp_servers.NAME], Goose has extensions:"})
	}
	// The functions of the programs look for keys of an object.
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
		// config.Parse reports what stands where a server should not.
		return config.Parse(f)
	}
	return config.ParseSections(f, r.title, r.tree, r.foundSections, r.problems)
}

// findSections calls the program's own function, which fills foundSections.
func (r *fileReading) findSections() { r.program.sections(r) }

// titles maps a syntax to the program that alone uses it, for a file that cannot be read.
var titles = map[syntax]string{inTOML: "Codex", inYAML: "Goose"}

// brokenFile returns the result for a file from which nothing can be read.
func brokenFile(f config.File, program string, p config.Problem) config.Parsed {
	return config.Parsed{Path: f.Path, Scope: f.Scope, Dir: f.Dir, Program: program, Servers: map[string]config.Entry{},
		Problems: []config.Problem{p}, Broken: true}
}

// fileReading is one file while it is read. It lives for one Parse.
type fileReading struct {
	// program holds the functions for the file's form; they get this fileReading.
	program
	// file is the path, for problems.
	file   string
	syntax syntax
	tree   config.Tree
	// dir is Context.Dir.
	dir string
	// inputs maps the id of each value that VS Code asks a person for to its description.
	inputs map[string]hujson.Value
	// builtins collects the extensions that are parts of Goose itself and switched on.
	builtins []*entry
	// foundSections holds the rewritten lists of servers, in the order in which the program's function found them.
	foundSections []config.Section
	problems      []config.Problem
}

// addProblem adds a problem at a byte offset. server and key may be empty. An equal problem is added once, because
// functions may meet a value twice.
func (r *fileReading) addProblem(at int, server, key, what, fix string, warning bool) {
	p := r.tree.Pos(at)
	problem := config.Problem{File: r.file, Line: p.Line, Col: p.Col, Server: server, Key: key, Text: what, Fix: fix,
		Warning: warning}
	if !slices.Contains(r.problems, problem) {
		r.problems = append(r.problems, problem)
	}
}

// addServers rewrites the list of servers under key and adds it to foundSections. keep may be nil; otherwise it decides
// by name which entries count, and may change them. The file's own tree stays unchanged.
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
	// An entry of a list has its name inside, if it has one.
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
	// A value that is neither stays in the section, for the reader of config to report it.
	r.foundSections = append(r.foundSections, config.Section{Key: key, Value: v})
}

// rewriteEntry rewrites one entry into the keys of config. ok is false for an entry that is left out. A value that is
// no object is returned unchanged, for the reader of config to report it; null is left out.
func (r *fileReading) rewriteEntry(name string, at int, v hujson.Value, keep func(string, *entry) bool) (hujson.Value, bool) {
	o, ok := v.Value.(*hujson.Object)
	if !ok {
		return v, !isNull(v)
	}
	e := &entry{fileReading: r, name: name, offset: at, members: slices.Clone(o.Members)}
	// Some people write the object under transport in files of every program.
	e.liftTransport()
	// Variables are translated last, so that texts which the program's function made are not translated again.
	if keep != nil && !keep(name, e) || !r.entry(e) {
		return v, false
	}
	if r.words != nil {
		e.translateVariables()
	}
	return hujson.Value{Value: &hujson.Object{Members: e.members}, StartOffset: v.StartOffset, EndOffset: v.EndOffset}, true
}

// quoteName quotes a name for a sentence, up to 60 characters.
func quoteName(s string) string { return `"` + messages.Line(s, 60) + `"` }
