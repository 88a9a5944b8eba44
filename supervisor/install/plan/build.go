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
func Build(w Way, fill Fill, m Machine, b *Bundle) (Result, error) {
	f := newFiller(fill)
	s, err := f.build(w, m, b)
	if err == nil {
		err = f.finish()
	}
	if err != nil {
		return Result{}, err
	}
	return Result{Spec: s, Notes: f.notes, Secrets: f.secrets}, nil
}

func (f *filler) build(w Way, m Machine, b *Bundle) (messages.Spec, error) {
	if w.Remote != nil {
		if len(f.fill.Env) > 0 {
			return messages.Spec{}, refuse(ErrValue, "a remote server has no environment, and --env is given", "")
		}
		return f.remote(w.Remote)
	}
	p := w.Package
	var c command
	var err error
	switch p.RegistryType {
	case NPM, PyPI, NuGet, Cargo:
		c, err = f.command(p, m)
	case OCI:
		c, err = f.container(p, m)
	case MCPB:
		c, err = f.bundle(p, m, b)
	default:
		return messages.Spec{}, refuse(ErrUnusable, "packages of "+short(p.RegistryType)+" are not known here", "")
	}
	if err != nil {
		return messages.Spec{}, err
	}
	for name, v := range c.env {
		if err := v.safe("the environment variable " + short(name)); err != nil {
			return messages.Spec{}, err
		}
	}
	s := c.spec()
	if p.Transport.Type == "stdio" || p.Transport.Type == "" {
		if len(f.fill.Headers) > 0 {
			return messages.Spec{}, refuse(ErrValue, "a server that is a child process has no headers, and --header is given", "")
		}
		return s, nil
	}
	r, err := f.remote(&p.Transport)
	if err != nil {
		return messages.Spec{}, err
	}
	text := c.program
	for _, w := range c.args {
		text += " " + w.shown()
	}
	if len(s.Env) > 0 {
		text += " (with " + strings.Join(names(s.Env), ", ") + " in its environment)"
	}
	f.note("the package speaks HTTP, and mcpvisor does not start such servers; keep this running beside: " +
		messages.Line(text, 600))
	return r, nil
}

func (c command) spec() messages.Spec {
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

func names(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for name := range m {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}
