package foreign

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/tailscale/hujson"
)

// word is a text of an entry with its path of keys and its offset.
type word struct {
	key    string
	offset int
	text   string
}

// isArgument reports whether the text belongs to a command line, in which a shell may have a use for "$" of its own.
func (w word) isArgument() bool {
	// cmd is Goose's key for the command.
	return strings.HasPrefix(w.key, "args") || strings.HasPrefix(w.key, "command") || strings.HasPrefix(w.key, "cmd")
}

// variableKeys holds the keys of an entry whose texts may contain variables.
var variableKeys = map[string]bool{
	"command": true, "cmd": true, "args": true, "cwd": true, "env": true, "envs": true, "environment": true, "url": true,
	"uri": true, "serverUrl": true, "httpUrl": true, "headers": true, "http_headers": true, "auth": true, "oauth": true,
	"headersHelper": true, "envFile": true,
}

// translateVariables rewrites the variables of an entry to ${NAME}, the form of config.
func (e *entry) translateVariables() {
	for i := range e.members {
		// Other texts, such as descriptions, may contain a "$" of their own.
		if key := nameOf(e.members[i]); variableKeys[key] {
			e.members[i].Value = e.translateValue(key, e.members[i].Value)
		}
	}
}

// translateValue returns a copy of a value with its texts translated. The file's own values stay unchanged, because the
// tree is shared.
func (e *entry) translateValue(key string, v hujson.Value) hujson.Value {
	switch x := v.Value.(type) {
	case *hujson.Object:
		out := &hujson.Object{}
		for _, m := range x.Members {
			out.Members = append(out.Members, hujson.ObjectMember{Name: m.Name, Value: e.translateValue(key+"."+nameOf(m), m.Value)})
		}
		v.Value = out
	case *hujson.Array:
		out := &hujson.Array{}
		for i, el := range x.Elements {
			out.Elements = append(out.Elements, e.translateValue(fmt.Sprintf("%s[%d]", key, i), el))
		}
		v.Value = out
	case hujson.Literal:
		// Texts that this package made have no length in the file, and hold config's own variables already.
		if s, ok := textOf(v); ok && v.EndOffset > v.StartOffset && strings.ContainsAny(s, "${") {
			// An unchanged text keeps its original literal.
			if out := e.words(e, word{key, v.StartOffset, s}); out != s {
				v.Value = hujson.String(out)
			}
		}
	}
	return v
}

// dollar stands for a "$" that begins no variable; config replaces it with a plain "$".
const dollar = "${$}"

// braced matches ${…} without braces inside.
var braced = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$\{([^{}]*)\}`) })

// sharedWords translates the variables that VS Code, Cursor, Windsurf, Claude Code and related programs have in common.
// Most have the same form in config and stay.
func sharedWords(e *entry, w word) string {
	// A bare $NAME would work in a shell, and reaches the server literally here.
	if m := bareVariable().FindStringSubmatch(w.text); m != nil && !w.isArgument() {
		e.warnLost(w.offset, w.key, "$"+m[1]+" is not replaced, and goes to the server as it stands", "write ${"+m[1]+"}")
	}
	return braced().ReplaceAllStringFunc(w.text, func(whole string) string {
		body := whole[2 : len(whole)-1]
		prefix, rest, _ := strings.Cut(body, ":")
		switch {
		case prefix == "input" && rest != "":
			return e.inputVariable(w, rest)
		case body == "workspaceRoot":
			return "${workspaceFolder}"
		case prefix == "workspaceFolder" && rest != "" && !strings.HasPrefix(rest, "-"):
			e.reportUnusable(w.offset, w.key, "it names one of several folders of a workspace, which mcpvisor does not know",
				"write the path, or ${workspaceFolder}")
		// A dev container tells variables of the machine from those of the container; the server runs on the machine.
		case (prefix == "localEnv" || prefix == "containerEnv") && rest != "":
			// VS Code separates the default by a colon, config by ":-".
			name, fallback, has := strings.Cut(rest, ":")
			if has {
				return "${" + name + ":-" + fallback + "}"
			}
			return "${" + name + "}"
		case prefix == "file" && rest != "":
			e.reportUnusable(w.offset, w.key, "the content of a file is not read into a value", "put it into a variable and write ${NAME}")
			// The entry is invalid; the text stays readable in other problems.
			return dollar + whole[1:]
		}
		return whole
	})
}

// bareVariable matches a text that consists of $NAME, perhaps after the word Bearer. Its author probably expected it to
// be replaced.
var bareVariable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:Bearer +)?\$([A-Za-z_][A-Za-z0-9_]*)$`) })

// inputVariable returns the variable that takes the place of a value for which VS Code asks a person. Its name has a
// prefix, so that an input called "path" does not become PATH.
func (e *entry) inputVariable(w word, id string) string {
	// Signs that no name of a variable has become underscores.
	name := "INPUT_" + strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c == '_' {
			return c
		}
		if c >= 'a' && c <= 'z' {
			return c - 'a' + 'A'
		}
		return '_'
	}, id)
	input, known := e.inputs[id]
	if !known {
		e.standIn(w.offset, w.key, "${input:"+id+"} has no input of that id in this file; the variable "+name+" is read instead", name)
		return "${" + name + "}"
	}
	// With a default the server can start unattended.
	if d, ok := valueAt(input, "default"); ok {
		// The default of a password is a placeholder and no password.
		if s, isText := textOf(d); isText && !isTrueIn(input, "password") {
			e.warnLost(w.offset, w.key, e.title+" asks a person for "+quoteName(id)+"; here the variable "+name+
				" is read, and the default taken if it is not set", "")
			// The default may not end the braces early or begin another variable.
			return "${" + name + ":-" + strings.NewReplacer("${", "", "}", "").Replace(s) + "}"
		}
	}
	e.standIn(w.offset, w.key, e.title+" asks a person for "+quoteName(id)+"; here the variable "+name+" is read", name)
	return "${" + name + "}"
}

// isTrueIn reports whether the member under key is true.
func isTrueIn(v hujson.Value, key string) bool {
	m, ok := valueAt(v, key)
	return ok && isTrue(m)
}

// plainWords keeps the text, for programs that replace nothing. A command line stays as it is. In another value,
// "${NAME}" would reach the server literally, which no author wants: config reads the variable, and a warning says so.
func plainWords(e *entry, w word) string {
	if !strings.Contains(w.text, "${") {
		if m := bareVariable().FindStringSubmatch(w.text); m != nil && !w.isArgument() {
			e.warnLost(w.offset, w.key, "$"+m[1]+" is not replaced, and goes to the server as it stands", "write ${"+m[1]+"}")
		}
		return w.text
	}
	// The escaped text reaches the server, or its shell, as the author wrote it.
	if w.isArgument() {
		return strings.ReplaceAll(w.text, "${", dollar+"{")
	}
	if strings.Contains(w.text, "${") {
		e.warnLost(w.offset, w.key, e.title+" does not replace ${…}; mcpvisor does, and reads the variable", "")
	}
	return w.text
}

// dollarName matches $NAME and ${…}.
var dollarName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$(?:\{([^{}]*)\}|([A-Za-z_][A-Za-z0-9_]*))`) })

// geminiWords translates $NAME and ${NAME}. In a command line, a variable that is not set keeps its text, as it does in
// Gemini, because a shell may know it.
func geminiWords(_ *entry, w word) string {
	return dollarName().ReplaceAllStringFunc(w.text, func(whole string) string {
		name := strings.Trim(whole, "${}")
		// A default may follow the name, in the form that config has.
		plain, _, _ := strings.Cut(name, ":-")
		switch {
		case !isName(plain):
			return whole
		// The default of the variable is its own text.
		case w.isArgument() && plain == name:
			return "${" + name + ":-" + dollar + whole[1:] + "}"
		}
		return "${" + name + "}"
	})
}

// curly matches {env:…} and {file:…}.
var curly = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{(env|file):([^{}]*)\}`) })

// openCodeWords translates {env:NAME}. opencode replaces no "$", so that each "${" is escaped for config.
func openCodeWords(e *entry, w word) string {
	if m := bareVariable().FindStringSubmatch(w.text); m != nil && !w.isArgument() {
		e.warnLost(w.offset, w.key, "$"+m[1]+" is not replaced, and goes to the server as it stands", "write {env:"+m[1]+"}")
	}
	s := strings.ReplaceAll(w.text, "${", dollar+"{")
	return curly().ReplaceAllStringFunc(s, func(whole string) string {
		kind, rest, _ := strings.Cut(strings.Trim(whole, "{}"), ":")
		rest = strings.TrimSpace(rest)
		switch {
		// A file named in a configuration could hold any secret of the person, and would be sent on.
		case kind == "file":
			e.reportUnusable(w.offset, w.key, "the content of a file is not read into a value", "put it into a variable and write {env:NAME}")
			return whole
		case !isName(rest):
			e.reportUnusable(w.offset, w.key, "{env:…} names no variable", "write {env:NAME}")
			return whole
		}
		return "${" + rest + "}"
	})
}
