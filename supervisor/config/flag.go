package config

import (
	"errors"
	"regexp"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// flagName stands in problems in the place of a file's path.
const flagName = "--mcp-server"

// flagForms is the fix of most errors: a person rarely remembers the forms.
const flagForms = `write NAME=URL, NAME="COMMAND ARGS…" or NAME={json}`

// hasScheme matches text that begins as an absolute URL does.
var hasScheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://`) })

// ParseFlag reads the value of one --mcp-server: NAME=URL, NAME=COMMAND ARGS…, or NAME={json} with an entry as in a file. The
// name has no spaces and no "=". Merge expands the variables, as it does for a file. A command line is split at spaces; quotes
// hold words together.
//
// The error is a [Problem], or several joined with errors.Join. It quotes the name at most, because the rest may hold a token.
func ParseFlag(s string) (name string, e Entry, err error) {
	name, rest, ok := strings.Cut(s, "=")
	rest = strings.TrimSpace(rest)
	bad := checkName(name)
	switch {
	case !ok:
		return "", e, Problem{File: flagName, Text: "there is no = in the value", Fix: flagForms}
	// The first "=" stands inside a URL, an entry or an argument, so that the text before it is no name.
	case hasScheme().MatchString(name), strings.HasPrefix(name, "{"), strings.ContainsAny(name, " \t\n"):
		return "", e, Problem{File: flagName, Text: "there is no name before the server", Fix: flagForms}
	case bad != nil:
		return "", e, Problem{File: flagName, Text: bad.text, Fix: flagForms}
	case rest == "":
		return name, e, Problem{File: flagName, Server: name, Text: "nothing follows the =", Fix: flagForms}
	}
	// Places count inside the value; most problems of a flag have none.
	r := &reader{file: flagName, server: name, src: newText([]byte(rest)), positions: map[string]Pos{}}
	e = Entry{Name: name, positions: r.positions}
	switch {
	case strings.HasPrefix(rest, "{"):
		root, src, at, bad := parseText([]byte(rest))
		if bad != nil {
			at := src.posAt(at)
			return name, e, Problem{File: flagName, Line: at.Line, Col: at.Col, Server: name, Text: bad.text, Fix: bad.fix}
		}
		r.src = src
		// The reader of the entry has collected all problems; those of r were none so far.
		e = r.readEntry(name, Pos{}, value{Value: root})
		r.problems = e.problems
	case hasScheme().MatchString(rest):
		e.Spec.URL, r.positions["url"] = rest, Pos{}
		// A file needs type for a WebSocket. The flag has no place for a type, and the scheme says it.
		e.Spec.Type = messages.TransportKindOfURL(rest)
		if strings.ContainsAny(rest, " \t\n") {
			r.addProblem(Pos{}, "", "something follows the URL", "to add headers, write the server as NAME={json}")
			break
		}
		r.checkShape(&e)
	// Everything else is a command line.
	default:
		ws, err := splitWords(rest)
		if err != nil {
			r.addProblem(Pos{}, "", err.Error(), "close it, or escape it with a backslash")
			break
		}
		e.Spec.Command, e.Spec.Args, r.positions["command"] = ws[0], ws[1:], Pos{}
		r.checkShape(&e)
	}
	e.problems = r.problems
	// Problems of a flag have no line; withProblems sets the scope and Spec.Invalid.
	e = e.withProblems(&Parsed{Path: flagName, Scope: messages.ScopeDynamic})
	for _, p := range e.problems {
		if !p.Warning {
			err = errors.Join(err, p)
		}
	}
	return name, e, err
}

// Flags reads the values of all --mcp-server as one file of the dynamic scope, which the caller puts last in the argument of
// [Merge]. A wrong value is an error and no problem of the configuration, because the person has just typed it; the errors of
// all values are joined.
func Flags(values []string) (Parsed, error) {
	p := Parsed{Path: flagName, Scope: messages.ScopeDynamic, Servers: map[string]Entry{}}
	var errs []error
	for _, v := range values {
		name, e, err := ParseFlag(v)
		if _, twice := p.Servers[name]; err == nil && twice {
			err = Problem{File: flagName, Server: name, Text: "it is given twice", Fix: "remove one or give it another name"}
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p.Servers[name] = e
		p.Problems = append(p.Problems, e.problems...)
	}
	sortProblems(p.Problems)
	return p, errors.Join(errs...)
}
