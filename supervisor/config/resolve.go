package config

import (
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// resolver turns one entry into the spec that is started. It lives for one resolveEntry.
type resolver struct {
	// ctx is the context with the project directory of the entry's file.
	ctx      Context
	entry    Entry
	problems []Problem
	// variables holds the names in the file of variables, applied those whose values the process gets.
	variables, applied []string
}

// resolveEntry expands an entry and checks the resulting values. The problems of the candidate are those beyond the entry's
// own. For a disabled server they become warnings, because it does not start.
func (c Context) resolveEntry(e Entry, sum func(string) (string, bool)) Candidate {
	r := &resolver{ctx: c, entry: e}
	// Specs share their slices and maps with the entry, so that each expansion works on a copy.
	s := e.Spec
	r.expandField("command", &s.Command)
	s.Args = slices.Clone(s.Args)
	for i := range s.Args {
		r.expandField(r.entry.argumentKey(i), &s.Args[i])
	}
	s.Env = r.expandAll("env", s.Env)
	// The variables of the file come after env, which wins over them.
	r.addEnvFile(&s)
	r.expandField("cwd", &s.Cwd)
	r.expandIsolation(&s)
	r.expandField("url", &s.URL)
	s.Headers = r.expandAll("headers", s.Headers)
	r.expandAuth(&s)
	r.expandTLS(&s)
	// Checks of values that could not be expanded would report the same fault again.
	if s.Invalid == "" && len(r.problems) == 0 {
		r.checkSpec(&s)
	}
	// A claim is dropped from an invalid entry as well, because the status shows it.
	r.dropClaims(&s)
	sortProblems(r.problems)
	if s.Invalid == "" {
		s.Invalid = invalidText(r.problems)
	}
	if s.Disabled {
		for i := range r.problems {
			r.problems[i].Warning = true
		}
	}
	return r.bindCandidate(s, sum)
}

// addProblem reports a problem at the place of a key of the entry, under the name that the file uses.
func (r *resolver) addProblem(key, text, fix string) {
	at := r.entry.posOf(key)
	r.problems = append(r.problems, Problem{File: r.entry.Spec.Source, Line: at.Line, Col: at.Col,
		Server: r.entry.Name, Key: r.entry.spelledKey(key), Text: text, Fix: fix})
}

// addWarning reports a problem that does not keep the server from starting.
func (r *resolver) addWarning(key, text, fix string) {
	r.addProblem(key, text, fix)
	r.problems[len(r.problems)-1].Warning = true
}

// expandField expands the variables of one text in place. It leaves the text unchanged and reports a problem if that fails.
func (r *resolver) expandField(key string, s *string) {
	out, bad := r.ctx.expandVariables(*s, 0)
	if bad != nil {
		// Merge joins this problem with what package foreign said of the variable, by its name.
		unset := r.ctx.Unset(*s)
		if len(unset) > 0 && r.entry.program != "" && strings.HasPrefix(bad.fix, setOrDefault) {
			// The program that owns the file may know no defaults.
			bad.fix = "set it"
		}
		r.addProblem(key, bad.text, bad.fix)
		if len(unset) > 0 {
			r.problems[len(r.problems)-1].Variable = unset[0]
		}
		return
	}
	*s = out
}

// argumentKey returns the path of keys to argument i, which stands in args or in the list under command.
func (e *Entry) argumentKey(i int) string {
	if _, ok := e.positions[e.spelledKey("command[0]")]; ok {
		return fmt.Sprintf("command[%d]", i+1)
	}
	return fmt.Sprintf("args[%d]", i)
}

// expandAll returns a copy of m with the variables of its values expanded, in the order of the names so that problems come in a
// fixed order.
func (r *resolver) expandAll(key string, m map[string]string) map[string]string {
	m = maps.Clone(m)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		v := m[name]
		r.expandField(key+"."+name, &v)
		m[name] = v
	}
	return m
}

// checkSpec checks the expanded values. Its problems quote no value, because any of them may hold a secret.
func (r *resolver) checkSpec(s *messages.Spec) {
	if allowed := r.ctx.AllowedTransports; allowed != nil && !slices.Contains(allowed, s.Type) {
		r.addProblem("type", "servers of type "+string(s.Type)+" are not allowed here", "allowed are "+kindNames(allowed))
		return
	}
	// An SDK server has no value that could be wrong.
	switch {
	case s.Type == messages.Stdio:
		r.checkProcess(s)
	case s.Type.Remote():
		r.checkRemote(s)
	}
}

// checkProcess checks a stdio server and settles its directory.
func (r *resolver) checkProcess(s *messages.Spec) {
	r.chooseDirectory(s)
	if s.Command == "" {
		r.addProblem("command", "it is empty after expansion", "name the program to start")
	}
	r.checkNUL("command", s.Command)
	r.checkNUL("cwd", s.Cwd)
	// Each argument has a place of its own in the file.
	for i, a := range s.Args {
		r.checkNUL(r.entry.argumentKey(i), a)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		r.checkNUL("env."+name, s.Env[name])
	}
	r.checkIsolation(s)
	if merelyFound(s.Scope) && r.ctx.ProjectDir != "" && !filepath.IsAbs(s.Cwd) {
		// An empty cwd becomes the project, so that the entry means the same wherever mcpvisor was started.
		s.Cwd = filepath.Join(r.ctx.ProjectDir, s.Cwd)
	}
}

// checkNUL reports a NUL character, which no operating system accepts in a program's name, arguments or environment.
func (r *resolver) checkNUL(key, s string) {
	if strings.Contains(s, "\x00") {
		r.addProblem(key, "it holds a NUL character", "remove it")
	}
}

// checkRemote checks the URL, headers, auth and TLS of a remote server.
func (r *resolver) checkRemote(s *messages.Spec) {
	u, err := url.Parse(s.URL)
	// The first two schemes are named in problems; the others are synonyms.
	schemes := s.Type.URLSchemes()
	known := strings.Join(schemes[:2], " or ")
	plain := err == nil && (u.Scheme == "http" || u.Scheme == "ws")
	// The first fault is reported; the others would follow from it.
	switch {
	case s.URL == "":
		r.addProblem("url", "it is empty after expansion", "write the server's URL")
	// The parser's own text quotes the URL, which may hold a secret.
	case err != nil:
		r.addProblem("url", "this is no URL", "write "+schemes[1]+"://host/path")
	case !slices.Contains(schemes, u.Scheme) && (u.Scheme == "" || u.Opaque != "" || u.Host == ""):
		r.addProblem("url", "it does not begin with "+known, "write "+schemes[1]+"://host/path")
	case !slices.Contains(schemes, u.Scheme):
		// The scheme is not quoted either, because it may be the value of a variable.
		r.addProblem("url", "its scheme does not fit type "+string(s.Type), "use "+known)
	case u.Hostname() == "":
		r.addProblem("url", "it names no host", "write "+schemes[1]+"://host/path")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		r.headerValue("headers."+name, s.Headers[name])
	}
	r.checkAuth(s)
	r.checkTLS(s, plain)
	// Other headers may be harmless, so that they get a warning only.
	switch key := PlainCredentials(*s); {
	case key != "":
		r.addProblem(key, "credentials are not sent to another machine over "+u.Scheme, "use "+schemes[1]+
			` in the url, or add "allowPlainHTTP": true`)
	case plain && len(s.Headers) > 0 && !addresses.ThisMachine(u.Hostname()):
		r.addWarning("url", "headers go to this host unencrypted", "use "+schemes[1])
	}
}

// headerValue reports control characters in the value of a header, because a line break would begin another header.
func (r *resolver) headerValue(key, v string) {
	if strings.IndexFunc(v, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) >= 0 {
		r.addProblem(key, "it holds a line break or another control character", "remove it, or look at the variable's value")
	}
}

// dropClaims removes trusted and a weak pin from entries of files that a stranger may have written, with a warning: an approval
// lets the server start, and does not weaken the checks of its tools.
func (r *resolver) dropClaims(s *messages.Spec) {
	// The approvals decide about a local file, which the person may have written through mcpvisor.
	if s.Trusted && s.Scope == messages.ScopeProject {
		s.Trusted = false
		r.addWarning("trusted", "a project file cannot make a server trusted; the key is dropped",
			"set it in your own file, with the whole entry")
	}
	// hold is the strictest word, and may come from a stranger.
	if s.Pin != "" && s.Pin != messages.PinHold && merelyFound(s.Scope) {
		s.Pin = ""
		r.addWarning("pin", "a project file cannot keep changed tools from being noticed; the key is dropped",
			"set it in your own file, with the whole entry")
	}
}

// kindNames joins the kinds for a sentence; "none" for an empty list.
func kindNames(ks []messages.TransportKind) string {
	if len(ks) == 0 {
		return "none"
	}
	words := make([]string, len(ks))
	for i, k := range ks {
		words[i] = string(k)
	}
	return strings.Join(words, ", ")
}
