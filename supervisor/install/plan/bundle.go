package plan

import (
	"encoding/json"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Bundle is an unpacked mcpb bundle. Package install makes it.
type Bundle struct {
	// Dir is the absolute path of its directory.
	Dir string
	// Has reports whether the bundle contains a file; the path has slashes and is relative to Dir.
	Has func(file string) bool
	// Manifest is the content of its manifest.json.
	Manifest Manifest
}

// Manifest is manifest.json of a bundle, in its versions 0.1 to 0.4, as far as running it needs.
type Manifest struct {
	Name   string `json:"name"`
	Server struct {
		Type       string        `json:"type"`
		EntryPoint string        `json:"entry_point"`
		Config     *launchConfig `json:"mcp_config"`
	} `json:"server"`
	Compatibility struct {
		Platforms []string `json:"platforms"`
	} `json:"compatibility"`
	UserConfig map[string]setting `json:"user_config"`
}

// launchConfig is mcp_config: the command line, with changes for single platforms.
type launchConfig struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	// Overrides is keyed by the manifest's names for operating systems.
	Overrides map[string]struct {
		Command string            `json:"command"`
		Args    []string          `json:"args"`
		Env     map[string]string `json:"env"`
	} `json:"platform_overrides"`
}

// setting is one value of user_config that the person gives at the installation.
type setting struct {
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Sensitive   bool   `json:"sensitive"`
	// Multiple lets the person give several values.
	Multiple bool `json:"multiple"`
	// Default is a text, a number, a truth value or a list of them.
	Default json.RawMessage `json:"default"`
}

// ReadManifest reads manifest.json. The cause of its errors is ErrDocument.
func ReadManifest(b []byte) (Manifest, error) {
	var m Manifest
	// Unknown keys are ignored: manifests describe much that running the bundle does not need.
	if err := rawjson.Unmarshal(b, &m); err != nil {
		return m, planError(ErrDocument, "the bundle's manifest.json cannot be read: "+strings.TrimPrefix(err.Error(), "json: "), "")
	}
	// One of the two says how the server starts.
	if m.Server.EntryPoint == "" && m.Server.Config == nil {
		return m, planError(ErrDocument, "the bundle's manifest.json does not say how to start it", "")
	}
	return m, nil
}

// Programs returns the files of the bundle that are started directly and so must be executable: those of a bundle of
// type binary. Archives made on Windows do not mark them.
func (m Manifest) Programs() []string {
	// Other types are started by an interpreter, which reads their files.
	if m.Server.Type != "binary" {
		return nil
	}
	var out []string
	add := func(file string) {
		file = path.Clean(strings.TrimPrefix(strings.ReplaceAll(file, `\`, "/"), "${__dirname}/"))
		// The command may be a program of the machine, which is none of the bundle's files.
		if filepath.IsLocal(filepath.FromSlash(file)) && file != "." && !slices.Contains(out, file) {
			out = append(out, file)
		}
	}
	if m.Server.EntryPoint != "" {
		add(m.Server.EntryPoint)
	}
	if c := m.Server.Config; c != nil {
		add(c.Command)
		for _, o := range c.Overrides {
			add(o.Command)
		}
	}
	return out
}

// manifestPlatform returns the name that manifests have for an operating system.
func manifestPlatform(goos string) string {
	if goos == "windows" {
		return "win32"
	}
	return goos
}

// bundleCommand returns the command line of an unpacked bundle. It runs in the bundle's directory, so that relative
// paths of its manifest mean its own files. The arguments and variables of the registry's entry come after those of the
// manifest.
func (f *resolver) bundleCommand(p *Package, m Machine, b *Bundle) (command, error) {
	if b == nil {
		return command{}, planError(ErrUnusable, "the bundle has not been unpacked", "")
	}
	platform := manifestPlatform(m.OS)
	// A bundle without a list claims to run everywhere.
	if list := b.Manifest.Compatibility.Platforms; len(list) > 0 && !slices.Contains(list, platform) {
		return command{}, planError(ErrUnusable, "the bundle runs on "+shortText(strings.Join(list, ", "))+" and not on "+platform, "")
	}
	l := b.Manifest.launchOn(platform)
	// The person is asked once, before any text needs an answer.
	settings, err := f.resolveSettings(b.Manifest.UserConfig, m)
	if err != nil {
		return command{}, err
	}
	e := expander{dir: b.Dir, home: m.Home, separator: "/", settings: settings, known: b.Manifest.UserConfig}
	if platform == "win32" {
		e.separator = `\`
	}
	c := command{cwd: b.Dir, env: map[string]mixedText{}}
	program, _, err := e.expandText(l.Command)
	if err != nil {
		return command{}, err
	}
	if err := program.checkSafe("the bundle's command"); err != nil {
		return command{}, err
	}
	// An interpreter of the machine stays a name, and a file of the bundle becomes an absolute path.
	if c.program, err = locateProgram(program.String(), b, platform); err != nil {
		return command{}, err
	}
	if c.program == "python" && !m.hasProgram("python") && m.hasProgram("python3") {
		// Many systems have the program under that name only.
		c.program = "python3"
	}
	// An argument may become several words, or none.
	for _, arg := range l.Args {
		values, err := e.expandArgument(arg)
		if err != nil {
			return command{}, err
		}
		c.args = append(c.args, values...)
	}
	// Sorted names make the first error the same in every run.
	for _, name := range slices.Sorted(maps.Keys(l.Env)) {
		if !envName(name) {
			return command{}, planError(ErrUnusable, "the bundle declares the environment variable "+shortText(name)+
				", which is no name of one", "")
		}
		v, present, err := e.expandText(l.Env[name])
		if err != nil {
			return command{}, err
		}
		// A variable whose setting has no value is not set.
		if present {
			c.env[name] = v
		}
	}
	// The registry's document may add arguments to those of the manifest.
	args, err := f.resolveArguments(p.PackageArguments)
	if err != nil {
		return command{}, err
	}
	env, err := f.resolveEnv(p.EnvironmentVariables)
	if err != nil {
		return command{}, err
	}
	// The registry's document, with the person's --env, wins over the manifest.
	maps.Copy(c.env, env)
	// Lists of paths in variables are separated as the platform does.
	list := ":"
	if platform == "win32" {
		list = ";"
	}
	if err := c.checkSteering(b.Dir, list); err != nil {
		return command{}, err
	}
	c.args = append(c.args, args...)
	// The settings of the person may have brought references, which checkSafe accepts in their pieces only.
	for _, w := range c.args {
		if err := w.checkSafe("an argument of the bundle's command"); err != nil {
			return command{}, err
		}
	}
	return c, nil
}

// launchOn returns the command line for a platform: mcp_config with its overrides or, without a command, the usual one
// for the type of the server.
func (m Manifest) launchOn(platform string) launchConfig {
	var l launchConfig
	if m.Server.Config != nil {
		l = *m.Server.Config
	}
	// An override replaces the command and the arguments as a whole, and adds variables.
	if o, ok := l.Overrides[platform]; ok {
		if o.Command != "" {
			l.Command = o.Command
		}
		if o.Args != nil {
			l.Args = o.Args
		}
		// The manifest is not changed: Build may be called again.
		env := maps.Clone(l.Env)
		if env == nil {
			env = map[string]string{}
		}
		maps.Copy(env, o.Env)
		l.Env = env
	}
	if l.Command != "" {
		return l
	}
	// The path is expanded with the rest, so that it becomes absolute.
	file := "${__dirname}/" + m.Server.EntryPoint
	switch m.Server.Type {
	case "node":
		l.Command, l.Args = "node", append([]string{file}, l.Args...)
	case "python":
		l.Command, l.Args = "python3", append([]string{file}, l.Args...)
		if platform == "win32" {
			l.Command = "python"
		}
	case "uv":
		l.Command, l.Args = "uv", append([]string{"run", "--directory", "${__dirname}", m.Server.EntryPoint}, l.Args...)
	// A binary is started directly.
	default:
		l.Command = file
	}
	return l
}

// locateProgram returns the program to start: a file of the bundle by its absolute path, or a name that is looked up in
// PATH. A path that is no file of the bundle is refused, because it would start a program of the machine by a place
// that the publisher chose.
func locateProgram(program string, b *Bundle, platform string) (string, error) {
	file := filepath.ToSlash(program)
	file = strings.TrimPrefix(strings.TrimPrefix(file, filepath.ToSlash(b.Dir)), "/")
	inside := strings.HasPrefix(filepath.ToSlash(program), filepath.ToSlash(b.Dir)+"/")
	file = path.Clean(file)
	switch {
	case program == "":
		return "", planError(ErrUnusable, "the bundle does not say which program to start", "")
	case filepath.IsLocal(filepath.FromSlash(file)) && b.Has(file):
		return filepath.Join(b.Dir, filepath.FromSlash(file)), nil
	// A manifest may leave the ending out.
	case platform == "win32" && filepath.IsLocal(filepath.FromSlash(file)) && b.Has(file+".exe"):
		return filepath.Join(b.Dir, filepath.FromSlash(file+".exe")), nil
	case inside, strings.ContainsAny(program, `/\`):
		return "", planError(ErrUnusable, "the bundle starts "+messages.Line(program, 120)+", which is no file of it", "")
	}
	return program, nil
}
