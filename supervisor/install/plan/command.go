package plan

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// command is a program with its words and its environment, before it becomes an entry.
type command struct {
	program string
	args    []words
	env     map[string]words
	cwd     string
}

// The alphabets of identifiers and versions. None begins with a dash, so that none is an option, and none holds what the
// programs read as a path, a URL or another source.
var (
	npmName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(@[A-Za-z0-9~][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_][A-Za-z0-9._~-]*$`)
	})
	pypiName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) })
	version  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+!_-]*$`) })
)

// The places that the programs ask anyway.
var usual = []string{
	"https://registry.npmjs.org", "https://pypi.org", "https://pypi.org/simple", "https://api.nuget.org",
	"https://api.nuget.org/v3/index.json", "https://www.nuget.org", "https://crates.io",
}

// inputs are the arguments of the program that runs the package, those of the package, and its environment.
func (f *filler) inputs(p *Package) (runtime, args []words, env map[string]words, err error) {
	if runtime, err = f.arguments(p.RuntimeArguments); err != nil {
		return nil, nil, nil, err
	}
	if args, err = f.arguments(p.PackageArguments); err != nil {
		return nil, nil, nil, err
	}
	env, err = f.environment(p.EnvironmentVariables)
	return runtime, args, env, err
}

// command is the command line of a package that is fetched and run by the program of its registry.
func (f *filler) command(p *Package, m Machine) (command, error) {
	name := npmName
	if p.RegistryType != NPM {
		name = pypiName
	}
	switch {
	case !name().MatchString(p.Identifier):
		return command{}, refuse(ErrUnusable, short(p.Identifier)+" is no name of a package of "+p.RegistryType, "")
	case p.Version != "" && !version().MatchString(p.Version):
		return command{}, refuse(ErrUnusable, short(p.Version)+" is no version of a package of "+p.RegistryType, "")
	case p.Version == "":
		f.note("the package has no version: what runs is the newest one at each start")
	}
	runtime, args, env, err := f.inputs(p)
	if err != nil {
		return command{}, err
	}
	source, err := f.source(p)
	if err != nil {
		return command{}, err
	}
	what := p.Identifier
	if p.Version != "" {
		what += "@" + p.Version
	}
	c := command{program: p.runner(m), env: env}
	if err := c.steered("", ""); err != nil {
		return command{}, err
	}
	if p.RegistryType == Cargo {
		return f.crate(p, c, args)
	}
	// Some publishers name the package among the runtime's arguments, too.
	again := []string{p.Identifier, what, p.Identifier + "@latest"}
	var before, after []string
	var table []option
	switch c.program {
	case "npx":
		table, before = npmOptions, []string{"-y"}
	case "bunx":
		table = npmOptions
	case "uvx":
		table = uvOptions(p)
	case "pipx":
		table, before = pipxOptions, []string{"run"}
		again = append(again, "run")
		if p.Version != "" {
			what = p.Identifier + "==" + p.Version
		}
	case "dnx":
		table, before = dnxOptions, []string{"--yes"}
		if len(args) > 0 {
			after = []string{"--"}
		}
	}
	if runtime, err = f.runtime(c.program, table, runtime, again...); err != nil {
		return command{}, err
	}
	if i := slices.IndexFunc(runtime, func(w words) bool { return w.String() == "--from" }); i >= 0 {
		// The identifier is the program inside then, and the version belongs to the package.
		what = p.Identifier
		if from := runtime[i+1].String(); p.Version != "" && !strings.ContainsAny(from, "=@") {
			runtime[i+1] = published(from + "==" + p.Version)
		}
	}
	c.args = slices.Concat(plain(before), source, runtime, plain([]string{what}), plain(after), args)
	return c, nil
}

// crate is the program that the person installs with cargo.
func (f *filler) crate(p *Package, c command, args []words) (command, error) {
	switch {
	case runsArguments(p.Identifier):
		return command{}, refuse(ErrUnusable, "the package is called "+short(p.Identifier)+
			", as a program that runs what its arguments say", "write the command yourself, if you want that: mcpvisor add NAME COMMAND")
	case c.program == "":
		return command{}, refuse(ErrUnusable, "the directory of programs that cargo installs is not known", "set CARGO_HOME")
	}
	f.note("install the program first: cargo install --locked " + cargoCrate(p))
	c.args = args
	return c, nil
}

func cargoCrate(p *Package) string {
	if p.Version == "" {
		return p.Identifier
	}
	return p.Identifier + "@" + p.Version
}

// source names another place than the usual one to fetch the package from.
func (f *filler) source(p *Package) ([]words, error) {
	base := strings.TrimSuffix(p.RegistryBaseURL, "/")
	if base == "" || slices.Contains(usual, base) {
		return nil, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !addresses.ThisMachine(u.Hostname())) {
		return nil, refuse(ErrUnusable, "the package is to be fetched from "+short(p.RegistryBaseURL)+", which is no https URL", "")
	}
	w := published(base)
	if err := w.safe("the address of the package registry"); err != nil {
		return nil, err
	}
	f.note("the package is fetched from " + short(u.Host) + ", not from the usual place")
	switch p.RegistryType {
	case NPM:
		return []words{published("--registry=" + base)}, nil
	case PyPI:
		return plain([]string{"--default-index", base}), nil
	case NuGet:
		return plain([]string{"--source", base}), nil
	}
	return nil, refuse(ErrUnusable, "the package is to be fetched from "+short(u.Host)+", which cargo is not told here", "")
}

func plain(list []string) []words {
	out := make([]words, len(list))
	for i, s := range list {
		out[i] = published(s)
	}
	return out
}
