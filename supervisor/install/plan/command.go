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
	args    []mixedText
	env     map[string]mixedText
	cwd     string
}

// The alphabets of identifiers and versions. None begins with a dash, so that none is an option, and none holds what the
// programs read as a path, a URL or another source.
var (
	npmNamePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(@[A-Za-z0-9~][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_][A-Za-z0-9._~-]*$`)
	})
	pypiNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) })
	versionPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+!_-]*$`) })
)

// The places that the programs ask anyway.
var defaultSources = []string{
	"https://registry.npmjs.org", "https://pypi.org", "https://pypi.org/simple", "https://api.nuget.org",
	"https://api.nuget.org/v3/index.json", "https://www.nuget.org", "https://crates.io",
}

// resolveInputs are the arguments of the program that runs the package, those of the package, and its environment.
func (f *resolver) resolveInputs(p *Package) (runtime, args []mixedText, env map[string]mixedText, err error) {
	if runtime, err = f.resolveArguments(p.RuntimeArguments); err != nil {
		return nil, nil, nil, err
	}
	if args, err = f.resolveArguments(p.PackageArguments); err != nil {
		return nil, nil, nil, err
	}
	env, err = f.resolveEnv(p.EnvironmentVariables)
	return runtime, args, env, err
}

// packageCommand is the command line of a package that is fetched and run by the program of its registry.
func (f *resolver) packageCommand(p *Package, m Machine) (command, error) {
	name := npmNamePattern
	if p.RegistryType != NPM {
		name = pypiNamePattern
	}
	switch {
	case !name().MatchString(p.Identifier):
		return command{}, planError(ErrUnusable, shortText(p.Identifier)+" is no name of a package of "+p.RegistryType, "")
	case p.Version != "" && !versionPattern().MatchString(p.Version):
		return command{}, planError(ErrUnusable, shortText(p.Version)+" is no version of a package of "+p.RegistryType, "")
	case p.Version == "":
		f.addNote("the package has no version: what runs is the newest one at each start")
	}
	runtime, args, env, err := f.resolveInputs(p)
	if err != nil {
		return command{}, err
	}
	source, err := f.sourceOptions(p)
	if err != nil {
		return command{}, err
	}
	what := p.Identifier
	if p.Version != "" {
		what += "@" + p.Version
	}
	c := command{program: p.runnerProgram(m), env: env}
	if err := c.checkSteering("", ""); err != nil {
		return command{}, err
	}
	if p.RegistryType == Cargo {
		return f.crateCommand(p, c, args)
	}
	// Some publishers name the package among the runtime's arguments, too.
	redundant := []string{p.Identifier, what, p.Identifier + "@latest"}
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
		redundant = append(redundant, "run")
		if p.Version != "" {
			what = p.Identifier + "==" + p.Version
		}
	case "dnx":
		table, before = dnxOptions, []string{"--yes"}
		if len(args) > 0 {
			after = []string{"--"}
		}
	}
	if runtime, err = f.runtimeOptions(c.program, table, runtime, redundant...); err != nil {
		return command{}, err
	}
	if i := slices.IndexFunc(runtime, func(w mixedText) bool { return w.String() == "--from" }); i >= 0 {
		// The identifier is the program inside then, and the version belongs to the package.
		what = p.Identifier
		if from := runtime[i+1].String(); p.Version != "" && !strings.ContainsAny(from, "=@") {
			runtime[i+1] = publishedText(from + "==" + p.Version)
		}
	}
	c.args = slices.Concat(publishedAll(before), source, runtime, publishedAll([]string{what}), publishedAll(after), args)
	return c, nil
}

// crateCommand is the program that the person installs with cargo.
func (f *resolver) crateCommand(p *Package, c command, args []mixedText) (command, error) {
	switch {
	case runsArguments(p.Identifier):
		return command{}, planError(ErrUnusable, "the package is called "+shortText(p.Identifier)+
			", as a program that runs what its arguments say", "write the command yourself, if you want that: mcpvisor add NAME COMMAND")
	case c.program == "":
		return command{}, planError(ErrUnusable, "the directory of programs that cargo installs is not known", "set CARGO_HOME")
	}
	f.addNote("install the program first: cargo install --locked " + cargoCrate(p))
	c.args = args
	return c, nil
}

func cargoCrate(p *Package) string {
	if p.Version == "" {
		return p.Identifier
	}
	return p.Identifier + "@" + p.Version
}

// sourceOptions names another place than the usual one to fetch the package from.
func (f *resolver) sourceOptions(p *Package) ([]mixedText, error) {
	base := strings.TrimSuffix(p.RegistryBaseURL, "/")
	if base == "" || slices.Contains(defaultSources, base) {
		return nil, nil
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !addresses.ThisMachine(u.Hostname())) {
		return nil, planError(ErrUnusable, "the package is to be fetched from "+shortText(p.RegistryBaseURL)+", which is no https URL", "")
	}
	w := publishedText(base)
	if err := w.checkSafe("the address of the package registry"); err != nil {
		return nil, err
	}
	f.addNote("the package is fetched from " + shortText(u.Host) + ", not from the usual place")
	switch p.RegistryType {
	case NPM:
		return []mixedText{publishedText("--registry=" + base)}, nil
	case PyPI:
		return publishedAll([]string{"--default-index", base}), nil
	case NuGet:
		return publishedAll([]string{"--source", base}), nil
	}
	return nil, planError(ErrUnusable, "the package is to be fetched from "+shortText(u.Host)+", which cargo is not told here", "")
}

func publishedAll(list []string) []mixedText {
	out := make([]mixedText, len(list))
	for i, s := range list {
		out[i] = publishedText(s)
	}
	return out
}
