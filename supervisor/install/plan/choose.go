package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The kinds of packages, as documents name them, and of remotes.
const (
	NPM    = "npm"
	PyPI   = "pypi"
	NuGet  = "nuget"
	Cargo  = "cargo"
	OCI    = "oci"
	MCPB   = "mcpb"
	Remote = "remote"
)

// Kinds lists all kinds that --package accepts.
var Kinds = []string{NPM, PyPI, OCI, MCPB, NuGet, Cargo, Remote}

// Machine describes the machine on which the server will run. The caller fills it in, so that the choice itself is
// pure.
type Machine struct {
	// OS is runtime.GOOS.
	OS string
	// Has reports whether a program is installed; with nil, every program counts as installed.
	Has func(program string) bool
	// Home is the person's home directory.
	Home string
	// CargoBin is the directory of the programs that cargo installs; .cargo/bin in Home if empty.
	CargoBin string
}

func (m Machine) hasProgram(program string) bool { return m.Has == nil || m.Has(program) }

// Way is one way of running a server: one of its packages or one of its remotes.
type Way struct {
	// Kind is one of Kinds, or an unknown word of the document.
	Kind string
	// Exactly one of Package and Remote is set. They point into the Server.
	Package *Package
	Remote  *Transport
}

// Ways returns all ways that a document names, in its order: packages, then remotes.
func (s *Server) Ways() []Way {
	var out []Way
	for i := range s.Packages {
		out = append(out, Way{Kind: s.Packages[i].RegistryType, Package: &s.Packages[i]})
	}
	for i := range s.Remotes {
		out = append(out, Way{Kind: Remote, Remote: &s.Remotes[i]})
	}
	return out
}

// String names a way in a few words, escaped and without credentials of a URL.
func (w Way) String() string {
	if w.Remote != nil {
		// The URL may contain a token of the publisher's, which is replaced.
		return "remote " + shortText(w.Remote.Type) + " " + shortText(messages.RedactURL(w.Remote.URL))
	}
	text := shortText(w.Kind) + " package " + shortText(w.Package.Identifier)
	if w.Package.Version != "" && w.Kind != OCI {
		text += " " + shortText(w.Package.Version)
	}
	return text
}

// runnerProgram returns the program that fetches and runs the package; empty for kinds without one. The publisher's
// hint counts only among the programs that are known here.
func (p *Package) runnerProgram(m Machine) string {
	switch p.RegistryType {
	case NPM:
		if p.RuntimeHint == "bunx" || p.RuntimeHint == "bun" {
			return "bunx"
		}
		return "npx"
	case PyPI:
		if p.RuntimeHint == "pipx" {
			return "pipx"
		}
		return "uvx"
	case NuGet:
		return "dnx"
	case Cargo:
		return p.cargoProgram(m)
	case OCI:
		// podman takes the options of docker.
		if p.RuntimeHint == "podman" || !m.hasProgram("docker") && m.hasProgram("podman") {
			return "podman"
		}
		return "docker"
	}
	return ""
}

// rank returns the preference of a way: the lower, the better. 0 is a package that speaks over standard input and
// output and whose program is installed: it is pinned by a version and sends nothing over the network by itself. Then
// come remotes, the newer transport first (1, 2), packages whose program is missing (3), those that a person would have
// to keep running (4), and unknown kinds (5).
func (w Way) rank(m Machine) int {
	switch {
	case w.Remote != nil && w.Remote.Type == "sse":
		return 2
	case w.Remote != nil:
		return 1
	// Build refuses an unknown kind, and the error then names it.
	case !slices.Contains(Kinds, w.Kind):
		return 5
	case w.Package.Transport.Type != "stdio" && w.Package.Transport.Type != "":
		return 4
	case w.Kind == MCPB, m.hasProgram(w.Package.runnerProgram(m)):
		return 0
	}
	return 3
}

// Choice is the chosen way, with the reason.
type Choice struct {
	Way
	// Reason is a sentence without a final full stop, for the person.
	Reason string
	// Others holds the ways that were not taken, in the order of the document.
	Others []Way
}

// Choose takes one of the ways. want is empty, one of Kinds, or one with a colon and what distinguishes it: an
// identifier, a transport or a URL (npm:@scope/name, remote:sse). Among equals the first of the document wins. The
// cause of its errors is ErrUnusable.
func Choose(s *Server, want string, m Machine) (Choice, error) {
	all := s.Ways()
	// Some entries of registries only point to a web page.
	if len(all) == 0 {
		fix := ""
		if s.WebsiteURL != "" {
			fix = "see " + messages.Line(s.WebsiteURL, 200)
		}
		return Choice{}, planError(ErrUnusable, messages.Line(s.Name, 120)+" names neither a package nor a remote", fix)
	}
	matching := all
	if want != "" {
		if matching = filterWays(all, want); len(matching) == 0 {
			return Choice{}, planError(ErrUnusable, fmt.Sprintf("%s has no %s", messages.Line(s.Name, 120), messages.Line(want, 120)),
				"it has: "+listWays(all))
		}
	}
	// MinFunc returns the first of equal ways, which is the publisher's preference.
	best := slices.MinFunc(matching, func(a, b Way) int { return a.rank(m) - b.rank(m) })
	c := Choice{Way: best, Reason: best.String()}
	// The person may ask for one of the others by --package.
	for _, w := range all {
		if w != best {
			c.Others = append(c.Others, w)
		}
	}
	// The person should see whether the choice was theirs, forced, or mcpvisor's.
	switch {
	case want != "" && len(matching) == 1:
		c.Reason += ", as asked for"
	case len(all) == 1:
		c.Reason += ", the only way to run it"
	default:
		c.Reason += ", " + best.choiceReason(m)
	}
	return c, nil
}

// choiceReason returns the end of the sentence about a choice among several ways.
func (w Way) choiceReason(m Machine) string {
	switch w.rank(m) {
	case 0:
		if w.Kind == MCPB {
			return "the first package that can run here"
		}
		return "the first package whose program (" + w.Package.runnerProgram(m) + ") is installed"
	// A remote ranks behind every package that can run.
	case 1, 2:
		return "a remote, because no package can run here as it is"
	case 3:
		return "although " + w.Package.runnerProgram(m) + " is not installed"
	}
	return "because nothing better is there"
}

// filterWays returns the ways that want describes; it may be empty.
func filterWays(all []Way, want string) []Way {
	kind, rest, _ := strings.Cut(want, ":")
	return slices.DeleteFunc(slices.Clone(all), func(w Way) bool {
		if w.Kind != kind {
			return true
		}
		// A remote has no identifier: its transport or its URL distinguishes it.
		if w.Remote != nil {
			return rest != "" && rest != w.Remote.Type && rest != w.Remote.URL
		}
		return rest != "" && rest != w.Package.Identifier && rest != w.Package.Transport.Type
	})
}

// listWays returns the ways for an error.
func listWays(all []Way) string {
	var out []string
	for _, w := range all {
		out = append(out, w.String())
	}
	return messages.Line(strings.Join(out, "; "), 600)
}
