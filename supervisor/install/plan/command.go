package plan

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// command is a program with its words and its environment, before it becomes a spec.
type command struct {
	program string
	args    []mixedText
	// env maps names to values whose pieces still say who wrote them.
	env map[string]mixedText
	// cwd is empty for all but bundles.
	cwd string
}

// The alphabets of identifiers and versions. None of them begins with a dash, so that no identifier is an option, and
// none contains a sign by which the programs recognise a path, a URL or another source.
var (
	npmNamePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(@[A-Za-z0-9~][A-Za-z0-9._~-]*/)?[A-Za-z0-9~_][A-Za-z0-9._~-]*$`)
	})
	pypiNamePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) })
	versionPattern  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+!_-]*$`) })
)

// defaultSources holds the registries that the programs use anyway; a document may name them without effect.
var defaultSources = []string{
	"https://registry.npmjs.org", "https://pypi.org", "https://pypi.org/simple", "https://api.nuget.org",
	"https://api.nuget.org/v3/index.json", "https://www.nuget.org", "https://crates.io",
}

// resolveInputs returns the arguments for the program that runs the package, those for the package, and its
// environment. The order of the calls is the order of the questions to the person.
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

// packageCommand returns the command line of a package that the program of its registry fetches and runs.
func (f *resolver) packageCommand(p *Package, m Machine) (command, error) {
	// npm alone has scopes with a slash.
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
	// The variables are checked before any of them could reach the program that fetches the package.
	if err := c.checkSteering("", ""); err != nil {
		return command{}, err
	}
	if p.RegistryType == Cargo {
		return f.crateCommand(p, c, args)
	}
	// Some publishers also name the package among the runtime's arguments.
	redundant := []string{p.Identifier, what, p.Identifier + "@latest"}
	var before, after []string
	var table []option
	switch c.program {
	// -y answers npx's question whether to install; standard input carries the protocol and no answers.
	case "npx":
		table, before = npmOptions, []string{"-y"}
	case "bunx":
		table = npmOptions
	case "uvx":
		table = uvOptions(p)
	// pipx separates the version as pip does.
	case "pipx":
		table, before = pipxOptions, []string{"run"}
		redundant = append(redundant, "run")
		if p.Version != "" {
			what = p.Identifier + "==" + p.Version
		}
	// Without "--", dnx takes the arguments of the package for its own.
	case "dnx":
		table, before = dnxOptions, []string{"--yes"}
		if len(args) > 0 {
			after = []string{"--"}
		}
	}
	if runtime, err = f.runtimeOptions(c.program, table, runtime, redundant...); err != nil {
		return command{}, err
	}
	// After --from the identifier names a program inside the package, and the version belongs to the package.
	if i := slices.IndexFunc(runtime, func(w mixedText) bool { return w.String() == "--from" }); i >= 0 {
		what = p.Identifier
		if from := runtime[i+1].String(); p.Version != "" && !strings.ContainsAny(from, "=@") {
			runtime[i+1] = publishedText(from + "==" + p.Version)
		}
	}
	// The program reads options up to the package's name, and passes on what follows it.
	c.args = slices.Concat(publishedAll(before), source, runtime, publishedAll([]string{what}), publishedAll(after), args)
	return c, nil
}

// crateCommand returns the program that the person installs with cargo, because cargo cannot fetch and run a package in
// one command.
func (f *resolver) crateCommand(p *Package, c command, args []mixedText) (command, error) {
	switch {
	// The arguments of such a program would be code that the publisher wrote.
	case runsArguments(p.Identifier):
		return command{}, planError(ErrUnusable, "the package is called "+shortText(p.Identifier)+
			", as a program that runs what its arguments say", "write the command yourself, if you want that: mcpvisor add NAME COMMAND")
	case c.program == "":
		return command{}, planError(ErrUnusable, "the directory of programs that cargo installs is not known", "set CARGO_HOME")
	}
	// --locked installs the versions of dependencies that the publisher's lock file names.
	f.addNote("install the program first: cargo install --locked " + cargoCrate(p))
	c.args = args
	return c, nil
}

// cargoCrate returns the crate as cargo install takes it.
func cargoCrate(p *Package) string {
	if p.Version == "" {
		return p.Identifier
	}
	return p.Identifier + "@" + p.Version
}

// sourceOptions returns the options that make the program fetch the package from another registry than its usual one.
// Only https is accepted, and http on this machine.
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
	// The person should notice another source, because a name there may mean another package.
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

// publishedAll marks words as written by the publisher or by mcpvisor.
func publishedAll(list []string) []mixedText {
	out := make([]mixedText, len(list))
	for i, s := range list {
		out[i] = publishedText(s)
	}
	return out
}
