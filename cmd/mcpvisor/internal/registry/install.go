// Package registry installs servers of an MCP registry by their name, for the command add, and holds the command search.
//
// How it fits: [InstallSpec] finds the server, asks for the inputs that its publisher declares, shows what would run, and
// returns the spec after a yes. What a registry offers becomes a spec in supervisor/install; package manage writes it into a
// file. Every text of the registry is a stranger's: it is cut, escaped and shown before it counts.
//
// Guarantees: nothing runs before the person has seen what would run and agreed, or has said --yes. A registry that a policy of the
// organisation forbids is not asked.
//
// Not promised: that a publisher is who a name says; the registry checks that, as far as it does.
package registry

import (
	"cmp"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
	"github.com/mcpvisor/mcpvisor/supervisor/install"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// Flags holds the flags of a command that installs a server by its name in a registry.
type Flags struct {
	// registry is the URL of --registry; empty for the configured one.
	registry string
	// way is the kind of package to take, empty for the best that this machine can start; args are NAME=VALUE pairs of inputs.
	way  string
	args []string
	// yes adds the server without a question about what it runs; silent asks no question at all, and fails where one is needed.
	yes, Silent bool
	// Env and headers are what the command has read from --env and --header.
	Env, Headers map[string]string
}

// AddTo adds the flags to a command.
func (f *Flags) AddTo(s *pflag.FlagSet) {
	addRegistryFlag(s, &f.registry)
	s.StringVar(&f.way, "package", "", "take this `kind` of what the registry offers: npm, pypi, oci, mcpb, nuget, cargo or "+
		"remote; npm:NAME and remote:sse tell several apart")
	s.BoolVar(&f.yes, "yes", false, "add a server of the registry without a question about what it runs")
	s.StringArrayVar(&f.args, "arg", nil, "give an input of the registry's entry its `NAME=VALUE` (repeatable)")
}

// addRegistryFlag adds --registry, which search and add share.
func addRegistryFlag(s *pflag.FlagSet, registry *string) {
	s.StringVar(registry, "registry", "", "ask the MCP registry at this `URL` (default: $MCPVISOR_REGISTRY, else \"registry\" "+
		"in a file of your own, else the official one)")
}

// openRegistry returns a client of the registry: that of the flag, of the environment, of the person's own files, or the
// official one, in this order. It refuses a registry whose URL a policy of the organisation forbids.
func openRegistry(o *cli.Options, base string) (*install.Registry, error) {
	if base == "" {
		base = os.Getenv("MCPVISOR_REGISTRY")
	}
	s, err := project.LoadSetup(o) // faults of the files do not matter here, but the policies and the registry in them do
	switch {
	case s == nil:
		return nil, err
	case base == "":
		base = s.Registry
	}
	for _, p := range s.Policies {
		if rule := p.RefusesURL(cmp.Or(base, install.Official)); rule != "" {
			return nil, exit.With(exit.Usage, "the registry is not asked: "+rule)
		}
	}
	at := install.Options{
		Base: base, Token: os.Getenv("MCPVISOR_REGISTRY_TOKEN"), Agent: "mcpvisor/" + supervisor.Version(),
		Machine: plan.Machine{OS: runtime.GOOS, Has: isInstalled},
	}
	if home, err := os.UserHomeDir(); err == nil {
		at.Machine.Home = home
	}
	// The path of cargo's programs follows cargo's own rules, without its configuration files.
	for _, variable := range []string{"CARGO_HOME", "CARGO_INSTALL_ROOT"} { // the last one that is set counts
		if root := os.Getenv(variable); filepath.IsAbs(root) {
			at.Machine.CargoBin = filepath.Join(root, "bin")
		}
	}
	cache, cached := os.UserCacheDir()
	own, configured := os.UserConfigDir()
	if cached == nil && configured == nil {
		// Downloads go to the cache, which may be deleted; bundles that servers run from stand beside the configuration.
		at.Cache, at.Bundles = filepath.Join(cache, "mcpvisor", "bundles"), filepath.Join(own, "mcpvisor", "bundles")
	}
	return install.New(at)
}

// isInstalled reports whether a program is in PATH; the choice of a package prefers those whose launcher is there.
func isInstalled(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// InstallSpec finds a server in a registry and returns the name and spec to write into a file. It prints on standard error what
// it found and chose, and asks at the terminal for required inputs. It writes no configuration and starts no server.
func InstallSpec(ctx context.Context, o *cli.Options, name string, f Flags) (string, messages.Spec, error) {
	none := messages.Spec{}
	args, err := f.parseArgs()
	if err != nil {
		return "", none, err
	}
	r, err := openRegistry(o, f.registry)
	if err != nil {
		return "", none, err
	}
	e, err := r.Find(ctx, name)
	if err != nil {
		return "", none, err
	}
	o.PrintRemark("%s %s from %s: %s", e.Name, e.Version, r.Host(), messages.Line(e.Description, 300))
	// The name comes before the inputs, so that the person does not type secrets for the wrong server.
	if err := confirmName(ctx, o, name, e.Name, f.Silent); err != nil {
		return "", none, err
	}
	made, err := r.Prepare(ctx, e, install.Request{Way: f.way, ValueSource: plan.ValueSource{
		GivenValues: plan.GivenValues{Env: f.Env, Headers: f.Headers, Args: args}, Ask: askInput(ctx, o, e.Name, f.Silent),
	}})
	if err != nil {
		return "", none, err
	}
	text := made.Choice.Reason
	if n := len(made.Choice.Others); n > 0 {
		others := make([]string, n)
		for i, w := range made.Choice.Others {
			others[i] = w.String()
		}
		text += "; --package chooses another: " + strings.Join(others, ", ")
	}
	o.PrintRemark("%s", text)
	for _, note := range made.Notes {
		o.PrintRemark("%s", note)
	}
	// Variables of the registry that steer programs were not typed by the person, who should know of them.
	for _, name := range slices.Sorted(maps.Keys(made.Spec.Env)) {
		reason, steers := steer.Reason(name)
		if _, typed := f.Env[name]; !typed && steers {
			o.PrintRemark("it is given %s, which changes %s", messages.Line(name, 60), reason)
		}
	}
	return made.Name, made.Spec, askToAdd(ctx, o, f, approve.Screen{Title: made.Name, Source: e.Name + " of " + r.Host(), Entry: approve.EntryText(made.Spec),
		Review: config.Review{Name: made.Name, Scope: messages.ScopeUser}, Mask: approve.MaskTyped(made.Secrets)})
}

// parseArgs reads the values of --arg. A name may repeat, and leading dashes are dropped, as people type flags of the server.
func (f *Flags) parseArgs() (map[string][]string, error) {
	out := map[string][]string{}
	for _, a := range f.args {
		name, value, ok := strings.Cut(a, "=")
		name = strings.TrimLeft(name, "-")
		if !ok || name == "" {
			// The word is not quoted in the error: it may be a secret that was typed without its name.
			return nil, exit.With(exit.Usage, "--arg: write NAME=VALUE, with the name that the registry's entry gives the input")
		}
		out[name] = append(out[name], value)
	}
	return out, nil
}

// confirmName asks whether a server that was found by a short name is the one that is meant, because other publishers may use
// the same word. A full name (with "/"), no terminal, or silent needs no question.
func confirmName(ctx context.Context, o *cli.Options, called, full string, silent bool) error {
	if silent || strings.Contains(called, "/") || !o.Prompter.HasTerminal() {
		return nil
	}
	word := "no"
	err := o.Prompter.PromptForCommand(ctx, full, func(t *ask.Conversation) error {
		var err error
		word, err = t.ChooseWord("Is it the one that you mean? [y]es or [n]o", "yes", "no")
		return err
	})
	code := exit.Failed
	switch {
	case err != nil:
		code = exit.Interrupted
	case word == "yes":
		return nil
	}
	return exit.With(code, "nothing was added; write the whole name, such as "+messages.Line(full, 200))
}
