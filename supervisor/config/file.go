package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// File is a configuration file as package discover read it, and the argument of [Parse].
type File struct {
	// Path names the file in problems and in Spec.Source.
	Path string
	// Scope decides precedence and trust.
	Scope messages.Scope
	// Dir is the directory of the project that the file belongs to: the value of ${workspaceFolder} in it, and the base of a
	// relative cwd in a project or local file. If it is empty, Context.ProjectDir counts.
	Dir string
	// Data is the content. Parse does not keep it.
	Data []byte
	// Err says as a clause why the file could not be read; empty if it could. Parse turns it into a problem, because a file
	// that must be there, and a managed file above all, may not vanish by being unreadable.
	Err string
	// Missing means that Err is about a file that was named and does not exist.
	Missing bool
}

// Parsed holds everything that one file says. Parse and Flags make it, and Merge reads it without changing it.
type Parsed struct {
	// Path, Scope and Dir are copied from the File.
	Path  string
	Scope messages.Scope
	Dir   string
	// Program is the program whose form the file has: "Codex". It is empty for mcpvisor's own form.
	Program string
	// Servers holds the entries by name, bad ones included (Spec.Invalid).
	Servers map[string]Entry
	// SamplingCommand is the program that answers servers which ask for the model, followed by its arguments; nil if the file
	// names none, or may not.
	SamplingCommand []string
	// DisabledServers holds the names of servers that are off, whichever file has their entries.
	DisabledServers []string
	// Registry is the base URL of the MCP registry to install from; empty if the file names none, or may not.
	Registry string
	// Problems holds those of the file and of its entries, in the order of their places.
	Problems []Problem
	// Broken means that nothing could be read from the file: it is unreadable, or no JSON, or no object.
	Broken bool
	// Policy is the value of policy in a managed file; nil if it has none.
	Policy *Policy
	// Audit is the record that the file asks for; nil if it does not mention one.
	Audit *Audit
	// Permissions holds the file's rules about tools; nil if it has none.
	Permissions *access.Set
	// Gateway says who may use the servers as an agent; nil if the file does not say it, or may not.
	Gateway *Gateway
	// Pin says what is done about changed tools; empty if the file does not say it, or may not.
	Pin string
	// Approve says which changes need a new approval of merely found servers; empty if the file does not say it, or may not.
	Approve string
	// hasServers means that the file has a list of servers, even an empty one. A managed file with it excludes all other files.
	hasServers bool
	// objectKey is the key of an object of servers, listKey that of a list of them; empty if there is none.
	objectKey, listKey string
}

// Under returns the key under which an edit puts another server. ok is false if the file has its servers in a list only, in
// which they stand under no name.
func (p Parsed) Under() (key string, ok bool) {
	if p.objectKey == "" && p.listKey == "" {
		return wrappers[0], true
	}
	return p.objectKey, p.objectKey != ""
}

// isExclusive reports whether servers of all other files are ignored beside this one. A managed file excludes them unless it
// holds only settings (a policy, permissions, audit, gateway, pin, approve) and no list of servers. A broken one excludes them as well:
// the organisation's restrictions are unknown, and starting servers without them would be unsafe.
func (p Parsed) isExclusive() bool {
	return p.Scope == messages.ScopeManaged && (p.Broken || p.hasServers || p.Policy == nil && p.Permissions == nil && p.Audit == nil && p.Gateway == nil && p.Pin == "" && p.Approve == "")
}

// Parse reads one file. It never fails as a whole: Problems lists what is wrong, and a file that is not JSON is Broken and has
// no servers. Nothing is expanded yet; Merge does that.
func Parse(f File) Parsed {
	p := Parsed{Path: f.Path, Scope: f.Scope, Dir: f.Dir, Servers: map[string]Entry{}}
	r := &reader{file: f.Path}
	// A file that could not be read has no text, and its error is its only problem.
	if f.Err != "" {
		r.addProblem(Pos{}, "", f.Err, "")
		p.Problems, p.Broken = r.problems, true
		return p
	}
	root, src, at, bad := parseText(f.Data)
	// The places of all further problems come from this text, also if it is broken.
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

// readServers reads the top level of a file: the servers, and the settings that stand beside them.
func (r *reader) readServers(o *hujson.Object, p *Parsed) {
	seen := map[string]Pos{}
	for _, m := range o.Members {
		l, _ := literalOf(m.Name)
		key, at := l.String(), r.posOf(m.Name)
		// The words pin, approve and disabledServers could also be names of servers that were put at the wrong level. Such a
		// value is left to the case that says so.
		switch {
		case slices.Contains(wrappers, key):
			if first, twice := seen[key]; twice {
				r.addProblem(at, key, "the key stands twice, first at "+first.String(), "make one of both")
			} else {
				seen[key] = at
			}
			p.hasServers = true
			r.readWrapper(value{m.Value, key}, p)
		// Only the organisation's file may have a policy.
		case key == policyKey && p.Scope == messages.ScopeManaged:
			if p.Policy != nil {
				r.addProblem(at, key, "the key stands twice", "make one of both")
			}
			p.Policy = r.readPolicy(value{m.Value, key}, p.Path)
		// Any other file could hold it by a mistake about the scopes, and its author would believe it in force.
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
		case key == gatewayKey && !looksLikeServer(m.Value):
			if p.Gateway != nil {
				r.addProblem(at, key, "the key stands twice", "make one of both")
				p.Gateway.Invalid = "the key gateway stands twice in " + p.Path
				continue
			}
			r.readGateway(value{m.Value, key}, p)
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
		// The author forgot the object around the servers; without this problem nothing would start and nothing would
		// be said.
		case looksLikeServer(m.Value):
			r.addProblem(at, key, "this looks like a server outside of mcpServers, and is not read",
				`put it into "mcpServers": {…}`)
		case !ignoredKeys[key] && !isRemark(key):
			r.warnUnknown(key, key, at, append(slices.Clone(wrappers), samplingKey, registryKey, permissionsKey, auditKey, gatewayKey, pinKey, approveKey, DisabledKey))
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
		// If both keys stand in the file, an edit uses mcpServers.
		if p.objectKey == "" || v.key == wrappers[0] {
			p.objectKey = v.key
		}
		for _, m := range x.Members {
			l, _ := literalOf(m.Name)
			r.addServer(l.String(), r.posOf(m.Name), m.Value, []string{v.key, l.String()}, p)
		}
	// An entry of a list has its name inside, and no path of keys for an edit.
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

// nameIn returns the text under "name" in an entry of a list, and the offset of that text; -1 if there is none.
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

// addServer reads one server into p. A name that cannot be shown or is too long is reported, and its entry is not added,
// because no caller could ask for it.
func (r *reader) addServer(name string, at Pos, v hujson.Value, path []string, p *Parsed) {
	// The reader is that of the file. Its server is set for this one problem only.
	if bad := checkName(name); bad != nil {
		r.server = name
		r.addProblem(at, "", bad.text, bad.fix)
		r.server = ""
		return
	}
	first, twice := p.Servers[name]
	switch {
	case twice && len(first.problems) >= maxProblems:
		// A name that stands a million times would otherwise sort a growing list of problems each time.
		return
	case !twice && len(p.Servers) >= MaxServers:
		// The problem is reported once for the file, and not for each further server.
		if !r.full {
			r.full = true
			r.addProblem(at, "", fmt.Sprintf("the file has more than %d servers, and the rest is not read", MaxServers), "use several files")
		}
		return
	// JSON leaves open which of two equal keys counts, so that neither is started: the problem makes the entry invalid.
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

// keepRaw keeps the entry in canonical form for the person who approves it. An entry that has no such form, or is longer than
// MaxEntry, becomes invalid and cannot be approved.
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

// withProblems returns the entry with its problems sorted and cut to maxProblems, and with Scope, Source and Invalid of its
// spec set. It is called again whenever a problem is added.
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

// checkName says what is wrong with the name of a server. Letters of all scripts, spaces and signs are fine, because the names
// that a model sees are derived from it and safe. Characters that act on a terminal are refused.
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
