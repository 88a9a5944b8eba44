package plan

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Result is the entry for a server, with what the person should know about it.
type Result struct {
	Spec messages.Spec
	// Notes holds sentences without a final full stop. They contain the publisher's words, escaped, and no secrets.
	Notes []string
	// Secrets holds the values in Spec that the person gave for secret inputs, and all variables and headers given
	// beforehand. A caller that prints Spec hides them.
	Secrets []string
}

// Build returns the spec of one way of running a server. A way of kind MCPB needs the unpacked bundle; for others b is
// nil. It calls Ask for each required value that was not given, and for no other. The causes of its errors are
// ErrUnusable, ErrMissing and ErrValue.
func Build(w Way, fill ValueSource, m Machine, b *Bundle) (Result, error) {
	f := newResolver(fill)
	s, err := f.buildSpec(w, m, b)
	if err == nil {
		// Only now is it known which of the given values had a place.
		err = f.checkUnused()
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Spec: s, Notes: f.notes, Secrets: f.secrets}, nil
}

// buildSpec returns the spec without the check of unused values. A package that speaks HTTP becomes a spec for its URL
// and a note with its command line, because mcpvisor does not start such servers.
func (f *resolver) buildSpec(w Way, m Machine, b *Bundle) (messages.Spec, error) {
	if w.Remote != nil {
		if len(f.source.Env) > 0 {
			return messages.Spec{}, planError(ErrValue, "a remote server has no environment, and --env is given", "")
		}
		return f.remoteSpec(w.Remote)
	}
	p := w.Package
	var c command
	var err error
	// The three groups differ in how the program gets its environment.
	switch p.RegistryType {
	case NPM, PyPI, NuGet, Cargo:
		c, err = f.packageCommand(p, m)
	case OCI:
		c, err = f.containerCommand(p, m)
	case MCPB:
		c, err = f.bundleCommand(p, m, b)
	default:
		return messages.Spec{}, planError(ErrUnusable, "packages of "+shortText(p.RegistryType)+" are not known here", "")
	}
	if err != nil {
		return messages.Spec{}, err
	}
	// The spec is expanded when it is read, so that no text of the publisher may hold a reference.
	for name, v := range c.env {
		if err := v.checkSafe("the environment variable " + shortText(name)); err != nil {
			return messages.Spec{}, err
		}
	}
	s := c.toSpec()
	if p.Transport.Type == "stdio" || p.Transport.Type == "" {
		if len(f.source.Headers) > 0 {
			return messages.Spec{}, planError(ErrValue, "a server that is a child process has no headers, and --header is given", "")
		}
		return s, nil
	}
	// The inputs of the package are resolved before, because the URL may name them.
	r, err := f.remoteSpec(&p.Transport)
	if err != nil {
		return messages.Spec{}, err
	}
	// The note shows the command line without the values of variables and secrets.
	text := c.program
	for _, w := range c.args {
		text += " " + w.redactedText()
	}
	if len(s.Env) > 0 {
		text += " (with " + strings.Join(sortedKeys(s.Env), ", ") + " in its environment)"
	}
	f.addNote("the package speaks HTTP, and mcpvisor does not start such servers; keep this running beside: " +
		messages.Line(text, 600))
	return r, nil
}

// toSpec returns the spec of a command that speaks over standard input and output.
func (c command) toSpec() messages.Spec {
	s := messages.Spec{Type: messages.Stdio, Command: c.program, Cwd: c.cwd}
	for _, w := range c.args {
		s.Args = append(s.Args, w.String())
	}
	for name, w := range c.env {
		if s.Env == nil {
			s.Env = map[string]string{}
		}
		s.Env[name] = w.String()
	}
	return s
}

// sortedKeys returns the keys of m in order.
func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
