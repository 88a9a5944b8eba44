package config

import (
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Policy says which commands may be run and which URLs may be reached. The zero value refuses nothing. What a deny list
// names is refused whatever is allowed; with an allow list, what it does not name is refused as well: an empty list
// that is not nil allows nothing.
//
// A pattern of a command is words with spaces between them: the program, and its arguments if there are more words. A *
// stands for any part of a word, and as the last word for any further arguments. "npx" is npx with any arguments, "npx
// -y @acme/*" is npx with these two. A program without a slash is one that PATH finds: to allow "npx" allows neither
// ./npx nor any npx of a spec whose env sets PATH or a variable of the loader, and to deny "npx" denies it wherever
// it is. On Windows case and the endings .exe, .cmd and .bat do not count.
//
// A pattern of a URL is [scheme://]host[:port][/path] with * for any part of the host or of the path, and for any port.
// "https://*.example.com/mcp*" allows that path of every host below example.com. What a pattern leaves out counts like
// this: no scheme is any, no path is any, and no port is the scheme's own in an allow list and any in a deny list.
//
// A deny list sees names, and neither what a shell command does nor where a name leads: only an allow list makes sure.
type Policy struct {
	AllowCommands []string `json:"allowCommands,omitzero"`
	DenyCommands  []string `json:"denyCommands,omitempty"`
	AllowURLs     []string `json:"allowURLs,omitzero"`
	DenyURLs      []string `json:"denyURLs,omitempty"`
	// Source is where the lists are from, for people.
	Source string `json:"-"`
}

// Empty reports whether a policy refuses nothing.
func (p Policy) Empty() bool {
	return p.AllowCommands == nil && len(p.DenyCommands) == 0 && p.AllowURLs == nil && len(p.DenyURLs) == 0
}

// Refuses names the rule that keeps a spec from being started, and what it is about; empty if none does. The command
// that auth runs counts like that of a server, and of auth's endpoints the deny list.
func (p Policy) Refuses(s messages.Spec) string {
	of := ""
	if p.Source != "" {
		of = " of " + messages.Line(p.Source, 200)
	}
	for _, c := range commandsOf(s) {
		for _, pattern := range p.DenyCommands {
			if c.matches(pattern, false) {
				return "denyCommands" + of + " refuses the command " + quote(c.words[0]) + " by " + quote(pattern)
			}
		}
		if p.AllowCommands != nil && !slices.ContainsFunc(p.AllowCommands, func(pattern string) bool {
			return c.matches(pattern, true)
		}) {
			return "allowCommands" + of + " does not allow the command " + quote(c.words[0])
		}
	}
	for i, raw := range urlsOf(s) {
		u, err := url.Parse(raw)
		if err != nil {
			continue // refused as it is
		}
		for _, pattern := range p.DenyURLs {
			if matchURL(pattern, u, false) {
				return "denyURLs" + of + " refuses " + quote(u.Host) + " by " + quote(messages.RedactURL(pattern))
			}
		}
		if i == 0 && p.AllowURLs != nil && !slices.ContainsFunc(p.AllowURLs, func(pattern string) bool {
			return matchURL(pattern, u, true)
		}) {
			return "allowURLs" + of + " does not allow " + quote(u.Host)
		}
	}
	return ""
}

// Refusal is the first refusal of several policies: all of them must agree.
func Refusal(s messages.Spec, policies ...Policy) string {
	for _, p := range policies {
		if rule := p.Refuses(s); rule != "" {
			return rule
		}
	}
	return ""
}

// commandLine is a program with its arguments.
type commandLine struct {
	words []string
	// path says that the spec chooses where programs are found.
	path bool
}

// commandsOf are the commands that a spec runs.
func commandsOf(s messages.Spec) (all []commandLine) {
	if s.Kind() == messages.Stdio && s.Command != "" {
		all = append(all, commandLine{append([]string{s.Command}, s.Args...), setsPath(s.Env)})
	}
	if a := s.Auth; a != nil && a.Command != "" && s.Kind() != messages.Stdio {
		words := append([]string{a.Command}, a.Args...)
		if a.Args == nil { // a line for the shell: its first word, and whatever it does with the rest
			words = strings.Fields(a.Command)
		}
		if len(words) > 0 {
			all = append(all, commandLine{words, setsPath(a.Env) || a.Args == nil && strings.ContainsAny(a.Command, shellSigns)})
		}
	}
	return all
}

// shellSigns are what may make a line of the shell run something else than its first word: such a line is allowed by
// the pattern * alone.
const shellSigns = ";&|`$()<>\n\\\"'=*?[]{}~#!"

func setsPath(env map[string]string) bool {
	for name := range env {
		switch strings.ToUpper(name) {
		case "PATH", "PATHEXT", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES":
			return true
		}
	}
	return false
}

func (c commandLine) matches(pattern string, allow bool) bool {
	want := strings.Fields(pattern)
	if len(want) == 0 {
		return false
	}
	if want[0] == "*" && len(want) == 1 {
		return true
	}
	program := program(c.words[0])
	bare := !strings.ContainsAny(want[0], `/\`)
	switch {
	case bare && allow && (strings.ContainsAny(c.words[0], `/\`) || c.path):
		return false
	case bare:
		program = base(program)
	case allow && filepath.ToSlash(filepath.Clean(c.words[0])) != filepath.ToSlash(c.words[0]):
		return false // /opt/../etc/x is not /opt/*
	case c.path && allow:
		return false
	default:
		program = path.Clean(filepath.ToSlash(program))
	}
	if !glob(programPattern(want[0]), program) {
		return false
	}
	args, want := c.words[1:], want[1:]
	if len(want) == 0 {
		return true
	}
	for i, w := range want {
		if w == "*" && i == len(want)-1 {
			return true
		}
		if i >= len(args) || !glob(w, args[i]) {
			return false
		}
	}
	return len(args) == len(want)
}

// windows is set where names of programs have no case.
const windows = filepath.Separator == '\\'

func program(name string) string {
	if !windows {
		return name
	}
	name = strings.ToLower(name)
	for _, end := range []string{".exe", ".cmd", ".bat", ".com"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

func programPattern(p string) string { return filepath.ToSlash(program(p)) }

func base(name string) string {
	return name[strings.LastIndexAny(name, `/\`)+1:]
}

// glob matches text against a pattern in which * stands for any text.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// urlsOf are the URLs that a spec reaches, the server's own first.
func urlsOf(s messages.Spec) []string {
	switch s.Kind() {
	case messages.HTTP, messages.SSE, messages.WebSocket, messages.ClaudeAIProxy:
	default:
		return nil
	}
	all := []string{s.URL}
	if a := s.Auth; a != nil {
		for _, u := range []string{a.AuthURL, a.TokenURL, a.Issuer} {
			if u != "" {
				all = append(all, u)
			}
		}
	}
	return all
}

func matchURL(pattern string, u *url.URL, allow bool) bool {
	if pattern == "*" {
		return true
	}
	scheme, rest, ok := strings.Cut(pattern, "://")
	if !ok {
		scheme, rest = "", pattern
	}
	if scheme != "" && !glob(strings.ToLower(scheme), strings.ToLower(u.Scheme)) {
		return false
	}
	host, wantPath, hasPath := strings.Cut(rest, "/")
	port := ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host, port = host[:i], host[i+1:]
	}
	host = strings.Trim(strings.ToLower(strings.TrimSuffix(host, ".")), "[]")
	if !glob(host, strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))) {
		return false
	}
	own := map[string]string{"http": "80", "ws": "80", "https": "443", "wss": "443"}[strings.ToLower(u.Scheme)]
	is := u.Port()
	if is == "" {
		is = own
	}
	switch {
	case port == "*", port == is:
	case port == "" && (!allow || is == own):
	default:
		return false
	}
	if !hasPath {
		return true
	}
	raw := u.Path
	if raw == "" {
		raw = "/"
	}
	clean := path.Clean(raw)
	if strings.HasSuffix(raw, "/") && clean != "/" {
		clean += "/"
	}
	if allow {
		return clean == raw && glob("/"+wantPath, raw)
	}
	return glob("/"+wantPath, raw) || glob("/"+wantPath, clean)
}
