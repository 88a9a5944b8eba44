package config

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// commandLine is a program with its arguments, and the circumstances that decide which code it runs.
type commandLine struct {
	// words holds the program and its arguments. It is never empty.
	words []string
	// shown holds the same words with secrets replaced; allowPattern compares both to find them.
	shown []string
	env   map[string]string
	// cwd is the directory that the entry names; empty if it leaves the choice to mcpvisor.
	cwd string
	// inherit means that the process gets the whole environment of mcpvisor.
	inherit bool
	// helper marks a command of auth. shell marks a line that a shell interprets beyond splitting it into words.
	helper, shell bool
}

// commandsOf returns the commands that a spec runs: the server, and the command of its auth.
func commandsOf(s messages.Spec) (all []commandLine) {
	plain := s.Redacted()
	if s.Kind() == messages.Stdio && s.Command != "" {
		all = append(all, commandLine{words: append([]string{s.Command}, s.Args...), shown: append([]string{plain.Command}, plain.Args...),
			env: s.Env, cwd: s.Cwd, inherit: s.InheritEnv != nil && *s.InheritEnv})
	}
	if a := s.Auth; a != nil && a.Command != "" && s.Kind() != messages.Stdio {
		c := commandLine{words: append([]string{a.Command}, a.Args...), shown: append([]string{plain.Auth.Command}, plain.Auth.Args...),
			env: a.Env, helper: true}
		// A line for the shell: its first word counts as the program, and shell tells whether the line can run another one.
		if a.Args == nil {
			c.words, c.shown = strings.Fields(a.Command), strings.Fields(plain.Auth.Command)
			c.shell = strings.ContainsAny(a.Command, shellSigns)
		}
		if len(c.words) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// shellSigns holds the characters by which a line can make the shell run something other than its first word. Only the pattern
// * allows a line with one of them.
const shellSigns = ";&|`$()<>\n\r\\\"'=*?[]{}~#!%^"

// refusesCommand checks the program and its arguments, first against denyCommands, which wins.
func (p Policy) refusesCommand(c commandLine) string {
	for _, pattern := range p.DenyCommands {
		if c.matchesPattern(pattern, false) {
			return "denyCommands" + p.originText() + " refuses the command " + quoteShort(c.words[0]) + " by " + quoteShort(pattern)
		}
	}
	if p.AllowCommands == nil || slices.ContainsFunc(p.AllowCommands, func(pattern string) bool { return c.matchesPattern(pattern, true) }) {
		return ""
	}
	text := "allowCommands" + p.originText() + " does not allow the command " + quoteShort(c.words[0])
	switch clean := filepath.Clean(c.words[0]); {
	case c.shell:
		return text + ", which is a line for a shell; write it as a list of words without signs of the shell"
	case isUncleanPath(c.words[0]):
		return text + " by such a path; write " + quoteShort(clean) + " in the entry, or the whole path"
	}
	return text + allowingLine("allowCommands", c.allowPattern())
}

// allowPattern returns the narrowest pattern that allows this command. A word that is a secret, or that cannot stand in a
// pattern, becomes **, so that a refusal shows no secret.
func (c commandLine) allowPattern() string {
	out := make([]string, len(c.words))
	for i, w := range c.words {
		if w == "" || len(w) > maxShownWord || i >= len(c.shown) || c.shown[i] != w || strings.ContainsAny(w, "* \t\r\n") ||
			messages.Printable(w) != w {
			w = "**"
		}
		out[i] = w
	}
	return strings.Join(out, " ")
}

// maxShownWord bounds a word of a proposed pattern, in bytes.
const maxShownWord = 200

// runners lists programs that take code from the directory in which they start: packages, modules, or settings that name other
// packages.
var runners = strings.Fields("npx npm pnpm pnpx yarn yarnpkg bun bunx deno uv uvx pipx python python3 py node tsx ts-node ruby bundle " +
	"perl php composer dotnet dnx cargo go make just task nix nix-shell direnv mise gradle mvn java docker-compose")

// refusesDirectory checks the directory in which a command starts. The command of an auth has no cwd of its own and starts
// where mcpvisor does, so that a runner in its place is refused.
func (p Policy) refusesDirectory(c commandLine) string {
	if !p.boundsCommands() && p.AllowCwd == nil {
		return ""
	}
	list := "allowCommands"
	if p.AllowCwd != nil {
		list = "allowCwd"
	}
	switch {
	case c.helper && slices.Contains(runners, baseName(normalizeProgram(strings.ToLower(c.words[0])))) && !slices.Contains(p.AllowCwd, "**"):
		return list + p.originText() + " does not allow " + quoteShort(c.words[0]) + " as a command of auth: it takes code from the directory that mcpvisor " +
			"is started in" + allowingLine("allowCwd", "**")
	case c.helper || c.cwd == "" || p.AllowsDirectory(c.cwd):
		return ""
	}
	return list + p.originText() + " does not allow the directory " + quoteShort(c.cwd) + ", from which programs take code and settings" +
		allowingLine("allowCwd", c.cwd)
}

// AllowsDirectory reports whether an entry may name dir as its cwd. A relative path and one with "." or ".." in it are refused,
// because patterns compare text.
func (p Policy) AllowsDirectory(dir string) bool {
	if slices.Contains(p.AllowCwd, "**") {
		return true
	}
	if !filepath.IsAbs(dir) || isUncleanPath(dir) {
		return false
	}
	name := foldPath(dir)
	return p.home != "" && name == foldPath(filepath.Clean(p.home)) || slices.ContainsFunc(p.AllowCwd, func(pattern string) bool {
		if pattern == "~" {
			pattern = p.home
		} else if rest, under := strings.CutPrefix(pattern, "~/"); under && p.home != "" {
			pattern = filepath.Join(p.home, rest)
		}
		return coversWord(strings.TrimSuffix(foldPath(pattern), "/"), strings.TrimSuffix(name, "/"))
	})
}

// chooseDirectory sets the directory of a server whose entry names none, where a policy bounds directories: the project's if
// all policies allow it, else the home directory, which holds no packages and settings of a stranger. Without such a policy it
// sets nothing, and the server starts where mcpvisor does, or in its project.
func (r *resolver) chooseDirectory(s *messages.Spec) {
	if r.entry.Spec.Cwd != "" || r.ctx.HomeDir == "" {
		return
	}
	for _, p := range r.ctx.policies {
		switch {
		case !p.boundsCommands() && p.AllowCwd == nil:
		case r.ctx.ProjectDir == "" || !p.AllowsDirectory(r.ctx.ProjectDir):
			s.Cwd = r.ctx.HomeDir
			return
		default:
			s.Cwd = r.ctx.ProjectDir
		}
	}
}

// foldPath returns a path for comparison: with slashes, and on Windows in lower case.
func foldPath(name string) string {
	if windows {
		name = strings.ToLower(name)
	}
	return filepath.ToSlash(name)
}

// isUncleanPath reports whether a path has parts that filepath.Clean removes: /opt/../etc/x begins with /opt and is not below
// it.
func isUncleanPath(name string) bool {
	return filepath.ToSlash(filepath.Clean(name)) != filepath.ToSlash(name)
}

// matchesPattern reports whether a pattern names this command. In an allow list the match is stricter: * covers less
// (coversWord), a pattern without a slash allows no path, and a line for a shell matches only *. In a deny list a pattern
// without a slash denies the program wherever it lies.
func (c commandLine) matchesPattern(pattern string, allow bool) bool {
	want := strings.Fields(pattern)
	if len(want) == 0 {
		return false
	}
	if len(want) == 1 && (want[0] == "*" || want[0] == "**") {
		return true
	}
	fits := messages.MatchPattern
	if allow {
		fits = coversWord
	}
	program := normalizeProgram(c.words[0])
	bare := !strings.ContainsAny(want[0], `/\`)
	switch {
	case allow && c.shell:
		return false
	// An allowed bare name is one that PATH finds; an allowed path is exactly that file.
	case allow && bare == strings.ContainsAny(c.words[0], `/\`):
		return false
	// A denied bare name also denies the program by a path.
	case bare:
		program = baseName(program)
	// /opt/tool/../../bin/sh begins like an allowed path and is another program.
	case allow && isUncleanPath(c.words[0]):
		return false
	default:
		program = path.Clean(filepath.ToSlash(program))
	}
	if !fits(programPattern(want[0]), program) {
		return false
	}
	// A pattern of the program alone stands for any arguments.
	args, want := c.words[1:], want[1:]
	if len(want) == 0 {
		return true
	}
	// Every further word of the pattern must match the argument at its place.
	for i, w := range want {
		if (w == "*" || w == "**") && i == len(want)-1 {
			return true
		}
		if i >= len(args) || !fits(w, args[i]) {
			return false
		}
	}
	// More arguments than the pattern names are not covered by it.
	return len(args) == len(want)
}

// windows is true where names of programs have no case and may leave out .exe.
const windows = filepath.Separator == '\\'

// normalizeProgram returns a program's name as Windows compares it: in lower case and without its ending. Elsewhere it returns
// the name unchanged.
func normalizeProgram(name string) string {
	if !windows {
		return name
	}
	name = strings.ToLower(name)
	for _, end := range []string{".exe", ".cmd", ".bat", ".com"} {
		name = strings.TrimSuffix(name, end)
	}
	return name
}

// programPattern brings the program of a pattern into the form of the names that it is compared with.
func programPattern(p string) string { return filepath.ToSlash(normalizeProgram(p)) }

// baseName returns the part after the last slash or backslash, on every system.
func baseName(name string) string {
	return name[strings.LastIndexAny(name, `/\`)+1:]
}

// coversWord reports whether a word matches a pattern of an allow list, in which * stands for part of a name and ** for any
// text. It builds a regular expression, whose engine runs in linear time.
func coversWord(pattern, text string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == text
	}
	var b strings.Builder
	b.WriteString(`\A`)
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		switch star := strings.IndexByte(rest, '*'); {
		// Two stars cross every sign, line breaks included.
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`(?s:.*)`)
			i += 2
		case star == 0:
			// At the beginning of a word or a part, * matches no dot and no dash: it must not become "..", a hidden file or a
			// flag.
			if i == 0 || strings.IndexByte(`/\@:=*`, pattern[i-1]) >= 0 {
				b.WriteString(`(?:[\pL\pN_+~=,][\pL\pN._+~=,-]*)?`)
			} else {
				b.WriteString(`[\pL\pN._+~=,-]*`)
			}
			i++
		case star < 0:
			b.WriteString(regexp.QuoteMeta(rest))
			i = len(pattern)
		default:
			b.WriteString(regexp.QuoteMeta(rest[:star]))
			i += star
		}
	}
	b.WriteString(`\z`)
	// All literal text is quoted, so that an error cannot occur; it would allow nothing.
	expr, err := regexp.Compile(b.String())
	return err == nil && expr.MatchString(text)
}
