package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// maxNesting bounds defaults inside defaults (${A:-${B:-…}}), because expandVariables recurses into them.
const maxNesting = 16

// expandVariables replaces the variables in s. depth is the number of defaults around s, 0 for a caller.
//
//	${NAME}  ${env:NAME}              the variable; a fault if it is not set, empty if it is set to nothing
//	${NAME:-default}                  the default if it is not set or set to nothing, as in a shell; may hold variables
//	${workspaceFolder}  ${userHome}   the project's and the person's directory, if Context names them
//	${workspaceFolderBasename}  ${pathSeparator}  ${/}  ${CLAUDE_PROJECT_DIR}
//	${$}                              a dollar sign: ${$}{NAME} is the text ${NAME}
//
// All other text is copied: $NAME, $$, and the other forms of a shell (${NAME%.*}), which belong to the shell that the server
// may start. The value of a variable is not expanded again, so that it cannot name further variables.
func (c Context) expandVariables(s string, depth int) (string, *syntaxProblem) {
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			b.WriteString(s)
			return b.String(), nil
		}
		b.WriteString(s[:i])
		end := closingBrace(s[i:])
		if end < 0 {
			return "", &syntaxProblem{`"${" is not closed`, "add }"}
		}
		whole, body := s[i:i+end+1], s[i+2:i+end]
		s = s[i+end+1:]
		name, def, hasDefault := strings.Cut(body, ":-")
		v, known, bad := c.variableValue(name)
		switch {
		case bad != nil:
			return "", bad
		// The braces hold no name of a variable: the text is for a shell.
		case !known:
			b.WriteString(whole)
			continue
		// A variable that is set to nothing takes the default, as ":-" does in a shell.
		case v != nil && (*v != "" || !hasDefault):
			b.WriteString(*v)
		case !hasDefault:
			// The name stands in a problem, and may be long or hold control characters. It is cut without its prefix, as Unset does
			// for its comparison.
			short := messages.Line(strings.TrimPrefix(name, "env:"), 60)
			return "", &syntaxProblem{notSet(short), unsetFix(messages.Line(name, 60))}
		case depth >= maxNesting:
			return "", &syntaxProblem{"defaults are nested too deeply", ""}
		default:
			d, bad := c.expandVariables(def, depth+1)
			if bad != nil {
				return "", bad
			}
			b.WriteString(d)
		}
	}
}

// unsetFix says what to do about a variable that is not set, by the name as written.
func unsetFix(name string) string {
	switch name {
	case "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA":
		return "only Claude Code sets it, for its plugins; set it to the directory of this plugin"
	}
	return setOrDefault + name + ":-default}"
}

// setOrDefault begins the usual fix. expandField recognises it, and shortens it for files of programs that know no defaults.
const setOrDefault = "set it, or write ${"

// notSet returns the text of the problem. Unset compares it with the problem that it meets.
func notSet(variable string) string { return "variable " + quoteShort(variable) + " is not set" }

// closingBrace returns the offset of the brace that closes the "${" with which s begins, or -1. It skips pairs of inner "${"
// and "}"; a lone "{" does not count.
func closingBrace(s string) int {
	open := 0
	for i := 0; i < len(s); i++ {
		switch {
		// A default may contain variables with braces of their own.
		case strings.HasPrefix(s[i:], "${"):
			open++
			i++
		case s[i] == '}':
			if open--; open == 0 {
				return i
			}
		}
	}
	return -1
}

// variableValue returns the value of name, or nil if the variable is not set. known is false if name cannot be the name of a
// variable, and bad is set for forms of VS Code that mcpvisor does not support: ${input:…} and the like.
func (c Context) variableValue(name string) (v *string, known bool, bad *syntaxProblem) {
	// VS Code writes a prefix for the kind of a variable.
	prefix, rest, prefixed := strings.Cut(name, ":")
	switch {
	case name == "workspaceFolder" && c.ProjectDir != "":
		return &c.ProjectDir, true, nil
	case name == "workspaceFolderBasename" && c.ProjectDir != "":
		base := filepath.Base(c.ProjectDir)
		return &base, true, nil
	case name == "userHome" && c.HomeDir != "":
		return &c.HomeDir, true, nil
	// The result "$" is copied and not expanded again, so that ${$}{NAME} yields the text ${NAME}.
	case name == "$":
		return &name, true, nil
	case name == "pathSeparator" || name == "/":
		separator := string(filepath.Separator)
		return &separator, true, nil
	case prefixed && prefix == "env" && rest != "":
		name = rest
	// These forms would reach the server literally, which their author does not expect.
	case prefixed && (prefix == "input" || prefix == "file" || prefix == "command" || prefix == "config"):
		return nil, true, &syntaxProblem{"${" + prefix + ":…} is not supported by this version", "use a variable: ${NAME}"}
	case !isIdentifier(name):
		return nil, false, nil
	}
	// The environment wins over the value that Claude Code would set.
	if c.Lookup != nil {
		if s, ok := c.Lookup(name); ok {
			v = &s
		}
	}
	if v == nil && name == "CLAUDE_PROJECT_DIR" && c.ProjectDir != "" {
		// Claude Code sets this variable for its servers, and the environment of mcpvisor rarely has it.
		v = &c.ProjectDir
	}
	return v, true, nil
}

// isIdentifier reports whether s can be the name of a variable in a POSIX shell.
func isIdentifier(s string) bool {
	for i, c := range s {
		if !(c == '_' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

// Unset returns the variables that s needs and that are not set, in the order in which s names them. expandVariables stops at
// the first one, so that Unset repeats it with the ones found so far set to nothing until it meets no further.
func (c Context) Unset(s string) (names []string) {
	for {
		last := ""
		own := c
		// The replaced Lookup also notes the name that expandVariables asked for last, which is the one that failed.
		own.Lookup = func(name string) (string, bool) {
			if slices.Contains(names, name) {
				return "", true
			}
			last = name
			if c.Lookup == nil {
				return "", false
			}
			return c.Lookup(name)
		}
		_, bad := own.expandVariables(s, 0)
		// Another fault (a brace that is not closed) ends the search: behind it no variable can be told.
		if bad == nil || bad.text != notSet(messages.Line(last, 60)) {
			return names
		}
		names = append(names, last)
	}
}
