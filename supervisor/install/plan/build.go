package plan

import (
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Result is the entry for a server, and what the person should know about it.
type Result struct {
	Spec messages.Spec
	// Notes are sentences without a final full stop. They hold the publisher's words and no secrets.
	Notes []string
	// Secrets are the values in Spec that the person gave for secret inputs, and all variables and headers that were given
	// beforehand: what shows Spec hides them.
	Secrets []string
}

// Build gives the spec of one way of running a server. A way of kind MCPB needs the unpacked bundle. It asks for what is
// required and was not given (Fill.Ask), and for nothing else.
func Build(w Way, fill ValueSource, m Machine, b *Bundle) (Result, error) {
	f := newResolver(fill)
	s, err := f.buildSpec(w, m, b)
	if err == nil {
		err = f.checkUnused()
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Spec: s, Notes: f.notes, Secrets: f.secrets}, nil
}

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
	r, err := f.remoteSpec(&p.Transport)
	if err != nil {
		return messages.Spec{}, err
	}
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

func sortedKeys(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
