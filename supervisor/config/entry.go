package config

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Entry is one server as a file describes it. Parse makes it and expands nothing; Merge turns it into a spec.
type Entry struct {
	// Name is the id of the server.
	Name string
	// Spec holds the entry as it was written, with Scope and Source set. Invalid is set if the entry cannot work in any
	// environment.
	Spec messages.Spec
	// Pos is the place of the name.
	Pos Pos
	// Path holds the keys that lead to the entry in its file, for edits; nil if it stands in a list.
	Path []string
	// EnvFile is the path of a file of variables for the process, as written. Merge reads the file.
	EnvFile string
	// Approve is "entry" or "files", the word of approveKey; empty if the entry does not have the key.
	Approve string
	// Approvals holds what the entry tells another client about asking before calls. It has no effect here; the import makes
	// rules of it.
	Approvals []Approval
	// raw is the entry in canonical form. It is nil for entries that need no approval.
	raw json.RawMessage
	// positions maps the path of a key ("env.PATH") to the place of its value.
	positions map[string]Pos
	// keyFor maps a field of the spec to the key that set it: keyFor["env"] is "environment" in some files.
	keyFor map[string]string
	// program is the program in whose form the file is; empty for mcpvisor's own form.
	program string
	// remote means that type or transport was "remote", which leaves the choice of the transport to the URL.
	remote bool
	// problems holds the entry's own problems in the order of the file, without those of its expanded values.
	problems []Problem
}

// posOf returns the place of a key, by its own name or by the one that the file uses, or the place of the entry's name if the
// key is absent.
func (e *Entry) posOf(key string) Pos {
	if p, ok := e.positions[key]; ok {
		return p
	}
	if p, ok := e.positions[e.spelledKey(key)]; ok {
		return p
	}
	return e.Pos
}

// spelledKey returns the path of a key as its file has it, for problems: "environment.PATH" for "env.PATH". Paths below auth
// are not translated, because several keys of different shapes set it.
func (e *Entry) spelledKey(key string) string {
	// headersHelper holds the program itself, and no object with the key command.
	if said, ok := e.keyFor[key]; ok && key == "auth.command" {
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

// posWithin returns the place of key, or that of outer, which should contain it.
func (e *Entry) posWithin(outer, key string) Pos {
	if p, ok := e.positions[key]; ok {
		return p
	}
	return e.posOf(outer)
}

// Written returns the key of the entry that sets a field of the spec, "enabled" for "disabled"; empty if none does.
func (e Entry) Written(field string) string { return e.keyFor[field] }

// readEntry reads one server. It uses a reader of its own, so that the places, problems and unknown keys of one entry stay
// apart from those of the file. It always returns an entry; addServer makes it invalid if it has problems.
func (r *reader) readEntry(name string, at Pos, v value) Entry {
	r = &reader{file: r.file, src: r.src, program: r.program, spelled: r.spelled, server: name, positions: map[string]Pos{}}
	keyFor := map[string]string{}
	e := Entry{Name: name, Pos: at, positions: r.positions, keyFor: keyFor, program: r.program}
	r.readObject(v, `write {"command": "…"} or {"url": "…"}`, func(key string, at Pos, m value) {
		f, known := fields[key]
		switch {
		case isNull(m) || isRemark(key):
			return
		// An approval of another client gets a fix that a person can copy, in the place of the general one.
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
		// readType compares both words by itself, because "remote" agrees with every remote kind.
		if !twice || f.means == "type" {
			f.read(r, &e, m)
			return
		}
		// Two keys with one meaning are accepted if the second one changes nothing. Otherwise the file contradicts itself, and
		// mcpvisor does not choose.
		before := e.Spec
		if f.read(r, &e, m); !reflect.DeepEqual(before, e.Spec) {
			r.addProblem(at, m.key, "it says something else than "+first+", and both mean the same", "remove one")
		}
	})
	r.warnUnknownKeys()
	// checkShape would report keys as missing that are there and could not be read.
	if invalidText(r.problems) == "" {
		r.checkShape(&e)
	}
	e.problems = r.problems
	return e
}

// warnUnknown warns about a key that this version ignores; path leads to it from the entry. Keys of other clients that have a
// meaning get the advice of unsupportedKeys, others the nearest of the candidates.
func (r *reader) warnUnknown(path, key string, at Pos, candidates []string) {
	fix, text := unsupportedKeys[key], "this version does not read the key"
	if r.program != "" {
		text = "it is not carried over"
	}
	if fix == "" {
		text = "unknown key, ignored"
		if near := nearestKey(key, candidates); near != "" {
			fix = "did you mean " + near + "?"
			// checkShape will miss the command or the URL and then proposes this renaming.
			if near == "command" || near == "url" {
				r.likelyFix = "rename " + messages.Line(key, 40) + " to " + near
			}
		}
	}
	// An empty key has an empty path, which would read as a problem of the whole entry.
	if path == "" {
		path = `""`
	}
	// Unknown keys of the entry itself are collected, and warnUnknownKeys reports them in one sentence.
	if fix == "" && r.server != "" && (path == key || path == `""`) {
		r.unknownKeys = append(r.unknownKeys, unknownKey{path, at})
		return
	}
	r.addWarning(at, path, text, fix)
}

// checkShape checks that the keys describe one server of one kind, and then lets settleKind write that kind down. It reports
// the first contradiction only, because the others usually follow from it.
func (r *reader) checkShape(e *Entry) {
	s := &e.Spec
	_, hasCommand := e.positions["command"]
	_, hasURL := e.positions["url"]
	_, hasList := e.positions[e.spelledKey("command[0]")]
	_, hasArgs := e.positions["args"]
	reportAt := func(key, text, fix string) { r.addProblem(e.posOf(key), key, text, fix) }
	// Keys that are there and wrong come before keys that are missing.
	switch {
	case hasCommand && s.Command == "":
		reportAt("command", "it is empty", "name the program to start")
	// Two lists of arguments have no order between them.
	case hasList && hasArgs:
		reportAt("args", "command is a list and holds the arguments already", "write them in one place")
	case hasURL && s.URL == "":
		reportAt("url", "it is empty", "write the server's URL")
	case hasCommand && hasURL:
		reportAt("", "it has both command and url", "keep the one that reaches the server")
	// An SDK server is found by its name in the embedding program.
	case s.Type == messages.SDK && (hasCommand || hasURL):
		reportAt("type", "a server of type sdk lives in the program itself and has no command or url", "remove it")
	case s.Type == "" && !e.remote && !hasCommand && !hasURL:
		fix := `add "command" for a program, or "url" for a remote server`
		reportAt("", "it has neither command nor url", cmp.Or(r.likelyFix, fix))
	case s.Type == messages.Stdio && !hasCommand:
		reportAt("type", "a server of type stdio needs command", "add command, or change type")
	// The word "remote" leaves Type empty, and still needs a URL.
	case !hasURL && (e.remote || s.Type != messages.Stdio && s.Type != messages.SDK && s.Type != ""):
		reportAt("type", "a remote server needs url", "add url, or change type")
	case s.Type == messages.ClaudeAIProxy && s.ID == "":
		reportAt("id", "a server of type claudeai-proxy needs the id of its connector", `add "id": "…"`)
	default:
		r.settleKind(e)
	}
}

// settleKind sets Type where it follows from the keys, drops the keys that have no effect on that type and warns about each of
// them. A URL without a type becomes HTTP with a fall-back to SSE.
func (r *reader) settleKind(e *Entry) {
	s := &e.Spec
	if s.Type == "" && s.URL != "" {
		s.Type = messages.HTTP
		// Older servers speak SSE under the same kind of URL, and most entries do not say it.
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
	// These keys describe a process.
	if s.Type != messages.Stdio {
		useless("args", len(s.Args) > 0)
		useless("env", len(s.Env) > 0)
		useless("envFile", e.EnvFile != "")
		useless("cwd", s.Cwd != "")
		useless("inheritEnv", s.InheritEnv != nil)
		useless("isolation", s.Isolation != nil)
		useless("mayControl", s.MayControl)
		// Dropped keys must not reach the spec: two specs that differ in them alone would count as different servers.
		e.EnvFile = ""
		s.Args, s.Env, s.Cwd, s.InheritEnv, s.Isolation, s.MayControl = nil, nil, "", nil, nil, false
	}
	// These keys describe HTTP requests. An auth of type none is accepted everywhere, because it asks for nothing.
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
	// Only an SDK server is registered under a name of its own. In a list, the same key names the entry, which is no fault.
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
