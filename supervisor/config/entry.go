package config

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Entry is one server as a file describes it: nothing is expanded yet.
type Entry struct {
	// Name is the id of the server.
	Name string
	// Spec holds the entry as it was written, with Scope and Source set. Invalid is set if the entry cannot work whatever the
	// environment is.
	Spec messages.Spec
	// Pos is where the name stands.
	Pos Pos
	// Path are the keys that lead to the entry in its file; nil if it stands in a list.
	Path []string
	// EnvFile is the path of a file of variables for the process, as written; Merge reads it.
	EnvFile string
	// Approve says what asks for a new approval of the entry: "entry" or "files"; empty if it says nothing.
	Approve string
	// Approvals say what another client was told about asking before calls. They change nothing here; import makes rules of them.
	Approvals []Approval
	// raw is the entry in canonical form, of a file that was merely found.
	raw json.RawMessage
	// positions is where the value of a key stands, by its path.
	positions map[string]Pos
	// keyFor is the key that said what a key means: by["env"] is "environment" in some files.
	keyFor map[string]string
	// program is whose file the entry stands in; empty for our own form.
	program string
	// remote says that type or transport was given as "remote", which leaves the kind to the URL.
	remote bool
	// problems are the entry's own, in the order of the file.
	problems []Problem
}

// posOf is where key stands, or the entry's name if the key does not.
func (e *Entry) posOf(key string) Pos {
	if p, ok := e.positions[key]; ok {
		return p
	}
	if p, ok := e.positions[e.spelledKey(key)]; ok {
		return p
	}
	return e.Pos
}

// spelledKey is the path of a key as its file has it: "environment.PATH" for "env.PATH". What auth means stands under keys of
// several forms, and keeps its name.
func (e *Entry) spelledKey(key string) string {
	if said, ok := e.keyFor[key]; ok && key == "auth.command" { // the program of headersHelper
		return said
	}
	head := key
	if i := strings.IndexAny(key, ".["); i >= 0 {
		head = key[:i]
	}
	if said, ok := e.keyFor[head]; ok && head != "auth" {
		return said + key[len(head):]
	}
	return key
}

// posWithin is where key stands, or where outer does, which should hold it.
func (e *Entry) posWithin(outer, key string) Pos {
	if p, ok := e.positions[key]; ok {
		return p
	}
	return e.posOf(outer)
}

// Written is the key of the entry that says what a field of the spec is, "enabled" for "disabled"; empty if none does.
func (e Entry) Written(field string) string { return e.keyFor[field] }

// readEntry reads one server.
func (r *reader) readEntry(name string, at Pos, v value) Entry {
	r = &reader{file: r.file, src: r.src, program: r.program, spelled: r.spelled, server: name, positions: map[string]Pos{}}
	keyFor := map[string]string{} // what a key means → the key that said it
	e := Entry{Name: name, Pos: at, positions: r.positions, keyFor: keyFor, program: r.program}
	r.readObject(v, `write {"command": "…"} or {"url": "…"}`, func(key string, at Pos, m value) {
		f, known := fields[key]
		switch {
		case isNull(m) || isRemark(key):
			return
		case !known:
			r.warnUnknown(m.key, key, at, fieldNames)
			if a, ok := approvalOf(key, m); ok && len(a.Rules(name)) > 0 {
				e.Approvals = append(e.Approvals, a)
				if fix := a.replacementHint(name); r.program != "" {
					r.problems[len(r.problems)-1].Fix = importHint
				} else if fix != "" {
					r.problems[len(r.problems)-1].Fix = fix
				}
			}
			return
		}
		e.positions[f.means] = r.posOf(m.Value)
		first, twice := keyFor[f.means]
		keyFor[f.means] = m.key
		if !twice || f.means == "type" { // readType compares by itself: "remote" agrees with every remote kind
			f.read(r, &e, m)
			return
		}
		before := e.Spec
		if f.read(r, &e, m); !reflect.DeepEqual(before, e.Spec) {
			r.addProblem(at, m.key, "it says something else than "+first+", and both mean the same", "remove one")
		}
	})
	r.warnUnknownKeys()
	if invalidText(r.problems) == "" {
		r.checkShape(&e)
	}
	e.problems = r.problems
	return e
}

// warnUnknown warns about a key that nothing reads; path leads to it.
func (r *reader) warnUnknown(path, key string, at Pos, candidates []string) {
	fix, text := unsupportedKeys[key], "this version does not read the key"
	if r.program != "" {
		text = "it is not carried over"
	}
	if fix == "" {
		text = "unknown key, ignored"
		if near := nearestKey(key, candidates); near != "" {
			fix = "did you mean " + near + "?"
			if near == "command" || near == "url" {
				r.likelyFix = "rename " + messages.Line(key, 40) + " to " + near
			}
		}
	}
	if path == "" {
		path = `""`
	}
	if fix == "" && r.server != "" && (path == key || path == `""`) { // of an entry itself
		r.unknownKeys = append(r.unknownKeys, unknownKey{path, at})
		return
	}
	r.addWarning(at, path, text, fix)
}

// checkShape checks that what was written describes one server of one kind, and makes that kind explicit.
func (r *reader) checkShape(e *Entry) {
	s := &e.Spec
	_, hasCommand := e.positions["command"]
	_, hasURL := e.positions["url"]
	_, hasList := e.positions[e.spelledKey("command[0]")]
	_, hasArgs := e.positions["args"]
	reportAt := func(key, text, fix string) { r.addProblem(e.posOf(key), key, text, fix) }
	switch {
	case hasCommand && s.Command == "":
		reportAt("command", "it is empty", "name the program to start")
	case hasList && hasArgs:
		reportAt("args", "command is a list and holds the arguments already", "write them in one place")
	case hasURL && s.URL == "":
		reportAt("url", "it is empty", "write the server's URL")
	case hasCommand && hasURL:
		reportAt("", "it has both command and url", "keep the one that reaches the server")
	case s.Type == messages.SDK && (hasCommand || hasURL):
		reportAt("type", "a server of type sdk lives in the program itself and has no command or url", "remove it")
	case s.Type == "" && !e.remote && !hasCommand && !hasURL:
		fix := `add "command" for a program, or "url" for a remote server`
		reportAt("", "it has neither command nor url", cmp.Or(r.likelyFix, fix))
	case s.Type == messages.Stdio && !hasCommand:
		reportAt("type", "a server of type stdio needs command", "add command, or change type")
	case !hasURL && (e.remote || s.Type != messages.Stdio && s.Type != messages.SDK && s.Type != ""):
		reportAt("type", "a remote server needs url", "add url, or change type")
	case s.Type == messages.ClaudeAIProxy && s.ID == "":
		reportAt("id", "a server of type claudeai-proxy needs the id of its connector", `add "id": "…"`)
	default:
		r.settleKind(e)
	}
}

// settleKind makes the kind explicit, drops what has no meaning for it and warns about that.
func (r *reader) settleKind(e *Entry) {
	s := &e.Spec
	if s.Type == "" && s.URL != "" {
		s.Type = messages.HTTP
		if _, said := e.positions["fallbackSSE"]; !said {
			s.FallbackSSE = true
		}
	} else if s.Type == "" {
		s.Type = messages.Stdio
	}
	useless := func(key string, there bool) {
		if there {
			r.addWarning(e.posOf(key), key, "it has no effect on a server of type "+string(s.Type), "remove it")
		}
	}
	if s.Type != messages.Stdio {
		useless("args", len(s.Args) > 0)
		useless("env", len(s.Env) > 0)
		useless("envFile", e.EnvFile != "")
		useless("cwd", s.Cwd != "")
		useless("inheritEnv", s.InheritEnv != nil)
		useless("isolation", s.Isolation != nil)
		useless("mayControl", s.MayControl)
		e.EnvFile = ""
		s.Args, s.Env, s.Cwd, s.InheritEnv, s.Isolation, s.MayControl = nil, nil, "", nil, nil, false
	}
	if s.Type == messages.Stdio || s.Type == messages.SDK {
		useless("headers", len(s.Headers) > 0)
		useless("auth", s.Auth != nil && s.Auth.Type != messages.AuthNone)
		useless("tls", s.TLS != nil)
		useless("allowPlainHTTP", s.AllowPlainHTTP)
		s.Headers, s.Auth, s.TLS, s.AllowPlainHTTP = nil, nil, nil, false
	}
	if s.Type != messages.HTTP {
		useless("fallbackSSE", s.FallbackSSE)
		s.FallbackSSE = false
	}
	if s.Type != messages.SDK {
		if s.Name != "" && s.Name != e.Name {
			r.addWarning(e.posOf("name"), "name", "the server is called by the key it stands under", "remove it")
		}
		s.Name = ""
	}
	if s.Type != messages.ClaudeAIProxy {
		s.ID = ""
	}
	if s.Type == messages.Stdio {
		r.warnCommandLine(e)
	}
}
