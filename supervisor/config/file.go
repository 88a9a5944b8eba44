package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// File is a configuration file as it was read.
type File struct {
	// Path names the file in problems and in Spec.Source.
	Path string
	// Scope decides precedence and trust.
	Scope messages.Scope
	// Dir is the directory of the project that the file belongs to: what ${workspaceFolder} stands for in it, and what a
	// relative cwd in a project or local file is relative to. Empty: Context.ProjectDir.
	Dir string
	// Data is the content.
	Data []byte
	// Err is why the file could not be read, as a clause; empty if it could. Parse reports it: a file that must be
	// there, and a managed file above all, does not vanish because it is unreadable.
	Err string
	// Missing says that Err is about a file that was named and is not there.
	Missing bool
}

// Parsed holds everything that one file says.
type Parsed struct {
	// Path, Scope and Dir are the file's.
	Path  string
	Scope messages.Scope
	Dir   string
	// Program is whose file it is, if its form is another program's: "Codex". Empty for our own form.
	Program string
	// Servers are the entries by name, bad ones included (Spec.Invalid).
	Servers map[string]Entry
	// SamplingCommand is the program that answers servers which ask for the model, and its arguments; nil if the file
	// names none, or may not.
	SamplingCommand []string
	// DisabledServers are the names of servers that are off, whichever file has their entries.
	DisabledServers []string
	// Registry is the base URL of the MCP registry to install from; empty if the file names none, or may not.
	Registry string
	// Problems are those of the file and of its entries, in order.
	Problems []Problem
	// Broken means that nothing could be read from the file: it is unreadable, or no JSON, or no object.
	Broken bool
	// Policy stands under policy in a managed file; nil if it has none.
	Policy *Policy
	// Audit is the record that it asks for; nil if it says nothing of one.
	Audit *Audit
	// Permissions are its rules about tools; nil if it has none.
	Permissions *access.Set
	// Pin says what is done about changed tools; empty if the file says nothing of it, or may not.
	Pin string
	// Approve says what asks for a new approval of servers that were merely found; empty if it says nothing, or may not.
	Approve string
	// hasServers says that the file has a list of servers, be it empty.
	hasServers bool
	// objectKey is the key of an object of servers, listKey that of servers in a list; empty if there is none.
	objectKey, listKey string
}

// Under is the key under which another server belongs. ok is false if the file has its servers in a list: then none can be
// put under a name.
func (p Parsed) Under() (key string, ok bool) {
	if p.objectKey == "" && p.listKey == "" {
		return wrappers[0], true
	}
	return p.objectKey, p.objectKey != ""
}

// isExclusive reports whether no server of another file counts beside this one. A managed file that holds a policy,
// permissions, or what is recorded or pinned, and no list of servers, leaves the servers to the others.
func (p Parsed) isExclusive() bool {
	return p.Scope == messages.ScopeManaged && (p.Broken || p.hasServers || p.Policy == nil && p.Permissions == nil && p.Audit == nil && p.Pin == "" && p.Approve == "")
}

// Parse reads one file. It never fails as a whole: what is wrong stands in Problems, and a file that is not JSON is
// Broken and has no servers. Nothing is expanded yet; Merge does that. The data is not kept.
func Parse(f File) Parsed {
	p := Parsed{Path: f.Path, Scope: f.Scope, Dir: f.Dir, Servers: map[string]Entry{}}
	r := &reader{file: f.Path}
	if f.Err != "" {
		r.addProblem(Pos{}, "", f.Err, "")
		p.Problems, p.Broken = r.problems, true
		return p
	}
	root, src, at, bad := parseText(f.Data)
	r.src = src
	if bad == nil {
		if _, ok := root.Value.(*hujson.Object); !ok {
			at, bad = root.StartOffset, &syntaxProblem{"found " + kindName(root.Value.Kind()) + " instead of an object",
				`write {"mcpServers": {}}`}
		}
	}
	if bad != nil {
		r.addProblem(src.posAt(at), "", bad.text, bad.fix)
		p.Problems, p.Broken = r.problems, true
		return p
	}
	r.readServers(root.Value.(*hujson.Object), &p)
	p.collectProblems(r.problems)
	return p
}

// readServers reads the top level of a file.
func (r *reader) readServers(o *hujson.Object, p *Parsed) {
	seen := map[string]Pos{}
	for _, m := range o.Members {
		l, _ := literalOf(m.Name)
		key, at := l.String(), r.posOf(m.Name)
		switch {
		case slices.Contains(wrappers, key):
			if first, twice := seen[key]; twice {
				r.addProblem(at, key, "the key stands twice, first at "+first.String(), "make one of both")
			} else {
				seen[key] = at
			}
			p.hasServers = true
			r.readWrapper(value{m.Value, key}, p)
		case key == policyKey && p.Scope == messages.ScopeManaged:
			if p.Policy != nil {
				r.addProblem(at, key, "the key stands twice", "make one of both")
			}
			p.Policy = r.readPolicy(value{m.Value, key}, p.Path)
		case key == policyKey:
			r.addWarning(at, key, "a policy counts in the managed file only", "remove it")
		case key == permissionsKey:
			if p.Permissions != nil {
				r.addProblem(at, key, "the key stands twice", "make one of both")
			}
			r.readPermissions(value{m.Value, key}, p)
		case key == samplingKey:
			r.readSampling(value{m.Value, key}, p)
		case key == auditKey:
			if p.Audit != nil {
				r.addProblem(at, key, "the key stands twice", "make one of both")
			}
			r.readAudit(value{m.Value, key}, p)
		case key == pinKey && !looksLikeServer(m.Value):
			r.readFilePin(value{m.Value, key}, p)
		case key == approveKey && !looksLikeServer(m.Value):
			if merelyFound(p.Scope) {
				r.addWarning(at, key, "a project file says this of its entries, one by one; the key is dropped", "write it into the entry")
				continue
			}
			p.Approve = r.approveWord(value{m.Value, key})
		case key == DisabledKey && !looksLikeServer(m.Value):
			r.readDisabled(value{m.Value, key}, p)
		case key == registryKey:
			r.readRegistry(value{m.Value, key}, p)
		case looksLikeServer(m.Value):
			r.addProblem(at, key, "this looks like a server outside of mcpServers, and is not read",
				`put it into "mcpServers": {…}`)
		case !ignoredKeys[key] && !isRemark(key):
			r.warnUnknown(key, key, at, append(slices.Clone(wrappers), samplingKey, registryKey, permissionsKey, auditKey, pinKey, approveKey, DisabledKey))
		}
	}
}

// looksLikeServer reports whether v is an object with a key that says where a server is.
func looksLikeServer(v hujson.Value) bool {
	o, ok := v.Value.(*hujson.Object)
	return ok && slices.ContainsFunc(o.Members, func(m hujson.ObjectMember) bool {
		l, _ := literalOf(m.Name)
		return slices.Contains([]string{"command", "url", "serverUrl", "httpUrl"}, l.String())
	})
}

// readWrapper reads the servers under mcpServers or servers: an object by name, or a list of entries with a name.
func (r *reader) readWrapper(v value, p *Parsed) {
	switch x := v.Value.Value.(type) {
	case *hujson.Object:
		if p.objectKey == "" || v.key == wrappers[0] {
			p.objectKey = v.key
		}
		for _, m := range x.Members {
			l, _ := literalOf(m.Name)
			r.addServer(l.String(), r.posOf(m.Name), m.Value, []string{v.key, l.String()}, p)
		}
	case *hujson.Array:
		p.listKey = v.key
		for i, el := range x.Elements {
			name, at := nameIn(el)
			if at < 0 {
				r.addProblem(r.posOf(el), fmt.Sprintf("%s[%d]", v.key, i), "an entry of a list needs a name", `add "name": "…"`)
				continue
			}
			r.addServer(name, r.src.posAt(at), el, nil, p)
		}
	default:
		r.reportType(v, "an object", `write {"name": {"command": "…"}}`)
	}
}

// nameIn is the text under "name" in an entry of a list, and its offset; -1 if there is none.
func nameIn(v hujson.Value) (name string, at int) {
	if o, ok := v.Value.(*hujson.Object); ok {
		for _, m := range o.Members {
			key, _ := literalOf(m.Name)
			if l, ok := literalOf(m.Value); ok && l.Kind() == '"' && key.String() == "name" {
				return l.String(), m.Value.StartOffset
			}
		}
	}
	return "", -1
}

// addServer reads one server into p. A name that no server can have is reported and not added: no caller could ask for it.
func (r *reader) addServer(name string, at Pos, v hujson.Value, path []string, p *Parsed) {
	if bad := checkName(name); bad != nil {
		r.server = name
		r.addProblem(at, "", bad.text, bad.fix)
		r.server = ""
		return
	}
	first, twice := p.Servers[name]
	switch {
	case twice && len(first.problems) >= maxProblems:
		return // it is said often enough, and each time would sort all
	case !twice && len(p.Servers) >= MaxServers:
		if !r.full {
			r.full = true
			r.addProblem(at, "", fmt.Sprintf("the file has more than %d servers, and the rest is not read", MaxServers), "use several files")
		}
		return
	case twice:
		first.problems = append(first.problems, Problem{File: r.file, Line: at.Line, Col: at.Col, Server: name,
			Text: "it is defined twice, first at " + first.Pos.String(), Fix: "remove one or give it another name"})
		p.Servers[name] = first.withProblems(p)
		return
	}
	e := r.readEntry(name, at, value{Value: v})
	e.Path = path
	if name != strings.TrimSpace(name) {
		e.problems = append(e.problems, Problem{File: r.file, Line: at.Line, Col: at.Col, Server: name,
			Text: "the name begins or ends with a space, and is used so", Fix: "remove it", Warning: true})
	}
	if merelyFound(p.Scope) {
		e.keepRaw(r.file, at, v)
	}
	p.Servers[name] = e.withProblems(p)
}

// keepRaw keeps the entry as it is written, for the person who approves it.
func (e *Entry) keepRaw(file string, at Pos, v hujson.Value) {
	raw, err := canonicalEntry(v)
	report := func(text, fix string) {
		e.problems = append(e.problems, Problem{File: file, Line: at.Line, Col: at.Col, Server: e.Name, Text: text, Fix: fix})
	}
	switch {
	case err != nil:
		if invalidText(e.problems) == "" {
			report("it cannot be shown as it is: "+messages.Line(err.Error(), 200), "write each key once, in valid text")
		}
	case len(raw) > MaxEntry:
		report(fmt.Sprintf("it is longer than %d bytes, and a person is to read it before it starts", MaxEntry), "shorten it")
	default:
		e.raw = raw
	}
}

// withProblems is the entry with everything that follows from its problems and its file.
func (e Entry) withProblems(p *Parsed) Entry {
	sortProblems(e.problems)
	e.Spec.Scope, e.Spec.Source, e.Spec.Invalid = p.Scope, p.Path, invalidText(e.problems)
	if n := len(e.problems) - maxProblems; n > 0 {
		e.problems = e.problems[:maxProblems:maxProblems]
		last := &e.problems[maxProblems-1]
		last.Text, last.Fix, last.Warning = fmt.Sprintf("%d more problems are not listed", n+1), "", e.Spec.Invalid == ""
	}
	return e
}

// maxName bounds the name of a server, in bytes.
const maxName = 200

// checkName says what is wrong with a server's name. Letters, spaces and signs of all kinds are fine: what a model sees
// is derived and safe. Characters that act on a terminal are not.
func checkName(name string) *syntaxProblem {
	switch {
	case strings.TrimSpace(name) == "":
		return &syntaxProblem{"a server has an empty name", "give it one"}
	case messages.Printable(name) != name, strings.ContainsAny(name, "\n\t"):
		return &syntaxProblem{"its name holds characters that cannot be shown", "use letters, digits, - and _"}
	case len(name) > maxName:
		return &syntaxProblem{fmt.Sprintf("its name is longer than %d bytes", maxName), "give it a shorter one"}
	}
	return nil
}
