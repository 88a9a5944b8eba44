package config

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// warnCommandLine is a program with its arguments, and what else decides which code it runs.
type commandLine struct {
	words []string
	// shown are the words without secrets.
	shown []string
	env   map[string]string
	// cwd is empty for the directory that its owner chooses.
	cwd     string
	inherit bool
	// helper is a command of auth. shell is one whose line a shell reads as more than words.
	helper, shell bool
}

// commandsOf are the commands that a spec runs.
func commandsOf(s messages.Spec) (all []commandLine) {
	plain := s.Redacted()
	if s.Kind() == messages.Stdio && s.Command != "" {
		all = append(all, commandLine{words: append([]string{s.Command}, s.Args...), shown: append([]string{plain.Command}, plain.Args...),
			env: s.Env, cwd: s.Cwd, inherit: s.InheritEnv != nil && *s.InheritEnv})
	}
	if a := s.Auth; a != nil && a.Command != "" && s.Kind() != messages.Stdio {
		c := commandLine{words: append([]string{a.Command}, a.Args...), shown: append([]string{plain.Auth.Command}, plain.Auth.Args...),
			env: a.Env, helper: true}
		if a.Args == nil { // a line for the shell: its first word, and whatever it does with the rest
			c.words, c.shown = strings.Fields(a.Command), strings.Fields(plain.Auth.Command)
			c.shell = strings.ContainsAny(a.Command, shellSigns)
		}
		if len(c.words) > 0 {
			all = append(all, c)
		}
	}
	return all
}

// shellSigns are what may make a line of the shell run something else than its first word: such a line is allowed by
// the pattern * alone.
const shellSigns = ";&|`$()<>\n\r\\\"'=*?[]{}~#!%^"

// refusesCommand judges the program and its arguments.
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

// allowPattern is the one that allows this command and as little else as can be said. A word that is a secret or cannot stand
// in a pattern becomes **.
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

// maxShownWord bounds a word of a proposed pattern in bytes.
const maxShownWord = 200

// runners take code from the directory that they are started in: packages, settings that name other packages, modules.
var runners = strings.Fields("npx npm pnpm pnpx yarn yarnpkg bun bunx deno uv uvx pipx python python3 py node tsx ts-node ruby bundle " +
	"perl php composer dotnet dnx cargo go make just task nix nix-shell direnv mise gradle mvn java docker-compose")

// refusesDirectory judges the directory that a command is started in.
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

// AllowsDirectory reports whether an entry may name a directory as its cwd.
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

// chooseDirectory chooses the directory of a server whose entry names none, where a policy bounds directories: the project's if all
// policies allow it, else the home directory, in which no stranger's packages and settings lie. Without such a policy the
// server starts where mcpvisor does, or in its project, which may be a folder that a stranger has filled.
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

func foldPath(name string) string {
	if windows {
		name = strings.ToLower(name)
	}
	return filepath.ToSlash(name)
}

// isUncleanPath reports whether a program or directory is written with a detour: /opt/../etc/x is not below /opt.
func isUncleanPath(name string) bool {
	return filepath.ToSlash(filepath.Clean(name)) != filepath.ToSlash(name)
}

func (c commandLine) matchesPattern(pattern string, allow bool) bool {
	want := strings.Fields(pattern)
	if len(want) == 0 {
		return false
	}
	if len(want) == 1 && (want[0] == "*" || want[0] == "**") {
		return true
	}
	fits := matchPattern
	if allow {
		fits = coversWord
	}
	program := normalizeProgram(c.words[0])
	bare := !strings.ContainsAny(want[0], `/\`)
	switch {
	case allow && c.shell:
		return false
	case allow && bare == strings.ContainsAny(c.words[0], `/\`):
		return false
	case bare:
		program = baseName(program)
	case allow && isUncleanPath(c.words[0]):
		return false
	default:
		program = path.Clean(filepath.ToSlash(program))
	}
	if !fits(programPattern(want[0]), program) {
		return false
	}
	args, want := c.words[1:], want[1:]
	if len(want) == 0 {
		return true
	}
	for i, w := range want {
		if (w == "*" || w == "**") && i == len(want)-1 {
			return true
		}
		if i >= len(args) || !fits(w, args[i]) {
			return false
		}
	}
	return len(args) == len(want)
}

// windows is set where names of programs have no case.
const windows = filepath.Separator == '\\'

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

func programPattern(p string) string { return filepath.ToSlash(normalizeProgram(p)) }

func baseName(name string) string {
	return name[strings.LastIndexAny(name, `/\`)+1:]
}

// matchPattern matches text against a pattern in which * stands for any text.
func matchPattern(pattern, text string) bool {
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

// coversWord matches a word against a pattern of an allow list, in which * stands for part of a name and ** for any text.
func coversWord(pattern, text string) bool {
	if !strings.Contains(pattern, "*") {
		return pattern == text
	}
	var b strings.Builder
	b.WriteString(`\A`)
	for i := 0; i < len(pattern); {
		rest := pattern[i:]
		switch star := strings.IndexByte(rest, '*'); {
		case strings.HasPrefix(rest, "**"):
			b.WriteString(`(?s:.*)`)
			i += 2
		case star == 0:
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
	expr, err := regexp.Compile(b.String())
	return err == nil && expr.MatchString(text)
}
