package config

import (
	"github.com/tailscale/hujson"
)

// Tree is the content of a file as values that know their places. Package foreign makes one from another syntax or
// another program's keys, and hands its servers to [ParseSections]. The StartOffset of a value, and of the name of a
// member, is its byte offset in the text, in every syntax.
type Tree struct {
	Root hujson.Value
	// Spelled maps the offset of a member's name to the path that the text has for it, where the tree has another name:
	// "command.args" for args. Problems then show the file's own words.
	Spelled map[int]string
	text    *sourceText
}

// ReadJSON reads JSON with comments, trailing commas and a byte order mark. The problem says why the text is none; nil
// if it is.
func ReadJSON(file string, data []byte) (Tree, *Problem) {
	root, src, at, bad := parseText(data)
	t := Tree{Root: root, text: src}
	if bad != nil {
		return t, t.newProblem(file, at, bad.text, bad.fix)
	}
	return t, nil
}

// NewTree returns a tree of a text in another syntax, without values yet: its Text, Pos and Offset can be used. The
// problem says that the text is too long or no UTF-8.
func NewTree(file string, data []byte) (Tree, *Problem) {
	src, at, bad := plainText(data)
	t := Tree{text: src}
	if bad != nil {
		return t, t.newProblem(file, at, bad.text, bad.fix)
	}
	return t, nil
}

// Text returns the content without a byte order mark; offsets count in it.
func (t Tree) Text() []byte { return t.text.data }

// Pos returns the place of the byte at offset.
func (t Tree) Pos(offset int) Pos { return t.text.posAt(offset) }

// Offset returns the byte at a place, whose column counts characters. A place beyond the text is its end.
func (t Tree) Offset(p Pos) int { return t.text.offsetOf(p) }

// newProblem returns a problem of the file at a byte offset.
func (t Tree) newProblem(file string, at int, text, fix string) *Problem {
	p := t.Pos(at)
	return &Problem{File: file, Line: p.Line, Col: p.Col, Text: text, Fix: fix}
}

// Section is a part of a file that holds servers: an object from names to entries, or a list of entries with a name.
type Section struct {
	// Key is the name of the part in its file: "mcpServers", "context_servers".
	Key   string
	Value hujson.Value
}

// ParseSections does the work of [Parse] for servers that package foreign found in a file of program. An entry has the
// keys that keys.go lists. said holds the problems that package foreign met: an error that names a server makes that
// server invalid.
func ParseSections(f File, program string, t Tree, sections []Section, said []Problem) Parsed {
	p := Parsed{Path: f.Path, Scope: f.Scope, Dir: f.Dir, Program: program, Servers: map[string]Entry{}}
	r := &reader{file: f.Path, src: t.text, program: program, spelled: t.Spelled}
	for _, s := range sections {
		p.hasServers = true
		r.readWrapper(value{s.Value, s.Key}, &p)
	}
	// Problems about a server join those of its entry, so that they count for Spec.Invalid.
	for _, problem := range said {
		e, ok := p.Servers[problem.Server]
		if !ok || problem.Server == "" {
			r.problems = append(r.problems, problem)
			continue
		}
		e.problems = append(e.problems, problem)
		p.Servers[problem.Server] = e
	}
	// Only now are all problems of an entry known.
	for name, e := range p.Servers {
		p.Servers[name] = e.withProblems(&p)
	}
	p.collectProblems(r.problems)
	return p
}

// collectProblems sets Problems to those of the file itself and of all its entries, sorted by place.
func (p *Parsed) collectProblems(own []Problem) {
	p.Problems = own
	for _, e := range p.Servers {
		p.Problems = append(p.Problems, e.problems...)
	}
	sortProblems(p.Problems)
}
