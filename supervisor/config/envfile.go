package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
)

// MaxEnvFile bounds a file of variables in bytes. Context.ReadFile enforces it.
const MaxEnvFile = 1 << 20

// readEnvFile reads the path of a file of variables. Merge reads the file itself.
func readEnvFile(r *reader, e *Entry, v value) { r.readText(v, &e.EnvFile) }

// addEnvFile adds the variables of the file that envFile names to the process. As in VS Code, variables of env win, and a
// missing file is a fault. Variables that steer which code runs (steer.Reason) are left out of a file in a project, because an
// approval covers their names and not their values.
func (r *resolver) addEnvFile(s *messages.Spec) {
	path := r.entry.EnvFile
	// Only a process has variables; settleKind has warned about envFile at other servers.
	if path == "" || s.Type != messages.Stdio {
		return
	}
	before := len(r.problems)
	// A path whose variables could not be expanded must not be opened.
	if r.expandField("envFile", &path); len(r.problems) > before {
		return
	}
	// No shell reads the path, so that "~/" is replaced here.
	if home, under := strings.CutPrefix(path, "~/"); under && r.ctx.HomeDir != "" {
		path = filepath.Join(r.ctx.HomeDir, home)
	}
	// A relative path begins at the project, also in the person's own file.
	if !filepath.IsAbs(path) && r.ctx.ProjectDir != "" {
		path = filepath.Join(r.ctx.ProjectDir, path)
	}
	// A path that goes around must not hide that the file lies in the project. A link can: only the system could tell.
	path = filepath.Clean(path)
	// Callers that only look at the configuration pass no ReadFile.
	if r.ctx.ReadFile == nil {
		r.addWarning("envFile", "it is not read here", "write the variables into env")
		return
	}
	data, why := r.ctx.ReadFile(path)
	if why != "" {
		r.addProblem("envFile", "the file of variables cannot be read: "+why, "make it, or remove the key")
		return
	}
	// A line that is no assignment makes the whole file unusable, because the rest may be misread.
	values, line := parseEnvFile(string(data))
	if line > 0 {
		r.addProblem("envFile", fmt.Sprintf("line %d of the file of variables is no NAME=VALUE", line), "mend it")
		return
	}
	// The map of the entry stays as it was written.
	if s.Env = maps.Clone(s.Env); s.Env == nil {
		s.Env = map[string]string{}
	}
	// The author of a project controls a file that lies in it, also if the person's own file names it.
	found := merelyFound(s.Scope) || r.ctx.ProjectDir != "" && strings.HasPrefix(path, r.ctx.ProjectDir+string(filepath.Separator))
	var leftOut []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		_, said := s.Env[name]
		// The binding lists every name of the file, also those that env overrides.
		if r.variables = append(r.variables, name); said {
			continue
		}
		if _, steers := steer.Reason(name); found && steers {
			leftOut = append(leftOut, name)
			continue
		}
		s.Env[name] = values[name]
		r.applied = append(r.applied, name)
	}
	if len(leftOut) > 0 {
		r.addWarning("envFile", "a file that lies in a project cannot change which code runs; "+messages.Line(strings.Join(leftOut, ", "), 200)+" is left out",
			"write it into env, which is approved with the entry")
	}
}

// parseEnvFile reads lines of NAME=VALUE in the form that such files have: "export" may stand before the name, # begins a
// comment, and quotes may surround a value. Double quotes know \n, \r, \t, \", \\ and \$, and quoted values may span lines.
// Nothing in a value is replaced. line is the number of the first line that has another form, from 1, or 0 if all are fine.
func parseEnvFile(s string) (values map[string]string, line int) {
	values = map[string]string{}
	// Editors on Windows add a byte order mark and carriage returns.
	s = strings.ReplaceAll(strings.TrimPrefix(s, "\ufeff"), "\r\n", "\n")
	for at := 1; s != ""; {
		text, rest, _ := strings.Cut(s, "\n")
		trimmed := strings.TrimSpace(text)
		if trimmed == "" || strings.HasPrefix(trimmed, "#") {
			s, at = rest, at+1
			continue
		}
		name, _, ok := strings.Cut(text, "=")
		plain := strings.TrimSpace(name)
		// Files that a shell also reads have export before the name.
		if word, after, two := strings.Cut(plain, " "); two && word == "export" {
			plain = strings.TrimSpace(after)
		}
		if !ok || plain == "" || strings.ContainsAny(plain, " \t\"'#\x00") {
			return nil, at
		}
		// The value is read from the whole text, because a quoted one may go on behind the line.
		v, remainder, good := valueOf(s[len(name)+1:])
		if !good || strings.ContainsRune(v, 0) {
			return nil, at
		}
		// A quoted value may have consumed several lines.
		at += strings.Count(s[:len(s)-len(remainder)], "\n")
		values[plain], s = v, remainder
	}
	return values, 0
}

// valueOf returns the value with which s begins and the text after its last line. ok is false if a quote is not closed or
// something other than a comment follows the closing quote.
func valueOf(s string) (v, rest string, ok bool) {
	line, after, _ := strings.Cut(s, "\n")
	trimmed := strings.TrimLeft(line, " \t")
	if trimmed == "" || !strings.ContainsAny(trimmed[:1], `"'`) {
		// A # begins a comment after a space only; a#b is a value. The added space lets a # at the very beginning count, too.
		if i := strings.Index(" "+line, " #"); i >= 0 {
			line = line[:max(i-1, 0)]
		}
		return strings.TrimSpace(line), after, true
	}
	quote, body := trimmed[0], s[len(line)-len(trimmed)+1:]
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		c := body[i]
		switch {
		// After the closing quote, only a comment may follow on the line.
		case c == quote:
			tail, after, _ := strings.Cut(body[i+1:], "\n")
			tail = strings.TrimSpace(tail)
			return b.String(), after, tail == "" || strings.HasPrefix(tail, "#")
		case c == '\\' && quote == '"' && i+1 < len(body):
			i++
			switch body[i] {
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			case 't':
				b.WriteByte('\t')
			case '"', '\\', '$':
				b.WriteByte(body[i])
			// An unknown escape keeps its backslash, so that C:\path in double quotes survives.
			default:
				b.WriteString(body[i-1 : i+1])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}
