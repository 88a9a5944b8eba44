package main

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

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/config/steer"
	"github.com/mcpvisor/mcpvisor/supervisor/install"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// installFlags are those of a command that installs a server by its name in a registry.
type installFlags struct {
	registry string
	way      string
	args     []string
	// yes adds what the registry says without a question, silent asks none.
	yes, silent bool
	// env and headers are what other flags of the command have read: --env and --header.
	env, headers map[string]string
}

func (f *installFlags) addTo(s *pflag.FlagSet) {
	addRegistryFlag(s, &f.registry)
	s.StringVar(&f.way, "package", "", "take this `kind` of what the registry offers: npm, pypi, oci, mcpb, nuget, cargo or "+
		"remote; npm:NAME and remote:sse tell several apart")
	s.BoolVar(&f.yes, "yes", false, "add a server of the registry without a question about what it runs")
	s.StringArrayVar(&f.args, "arg", nil, "give an input of the registry's entry its `NAME=VALUE` (repeatable)")
}

func addRegistryFlag(s *pflag.FlagSet, registry *string) {
	s.StringVar(registry, "registry", "", "ask the MCP registry at this `URL` (default: $MCPVISOR_REGISTRY, else \"registry\" "+
		"in a file of your own, else the official one)")
}

// openRegistry is the registry that the person means: by the flag, by the environment, by their files, or the official
// one.
func (o *options) openRegistry(base string) (*install.Registry, error) {
	if base == "" {
		base = os.Getenv("MCPVISOR_REGISTRY")
	}
	s, err := loadSetup(o) // what is wrong with the files does not matter here, but the policies do
	switch {
	case s == nil:
		return nil, err
	case base == "":
		base = s.Registry
	}
	for _, p := range s.Policies {
		if rule := p.RefusesURL(cmp.Or(base, install.Official)); rule != "" {
			return nil, &exitError{exitUsage, "the registry is not asked: " + rule}
		}
	}
	at := install.Options{
		Base: base, Token: os.Getenv("MCPVISOR_REGISTRY_TOKEN"), Agent: "mcpvisor/" + supervisor.Version(),
		Machine: plan.Machine{OS: runtime.GOOS, Has: isInstalled},
	}
	if home, err := os.UserHomeDir(); err == nil {
		at.Machine.Home = home
	}
	// cargo's own rules, without its configuration files.
	for _, variable := range []string{"CARGO_HOME", "CARGO_INSTALL_ROOT"} { // the last one counts
		if root := os.Getenv(variable); filepath.IsAbs(root) {
			at.Machine.CargoBin = filepath.Join(root, "bin")
		}
	}
	cache, cached := os.UserCacheDir()
	own, configured := os.UserConfigDir()
	if cached == nil && configured == nil {
		at.Cache, at.Bundles = filepath.Join(cache, "mcpvisor", "bundles"), filepath.Join(own, "mcpvisor", "bundles")
	}
	return install.New(at)
}

func isInstalled(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// installSpec finds a server in a registry and gives what is to be written into a file, under which name. It says what it
// found and chose on standard error, and asks at the terminal for what is required and was not given. Nothing is written
// and nothing is started.
func installSpec(ctx context.Context, o *options, name string, f installFlags) (string, messages.Spec, error) {
	none := messages.Spec{}
	args, err := f.parseArgs()
	if err != nil {
		return "", none, err
	}
	r, err := o.openRegistry(f.registry)
	if err != nil {
		return "", none, err
	}
	e, err := r.Find(ctx, name)
	if err != nil {
		return "", none, err
	}
	o.printRemark("%s %s from %s: %s", e.Name, e.Version, r.Host(), messages.Line(e.Description, 300))
	if err := o.confirmName(ctx, name, e.Name, f.silent); err != nil {
		return "", none, err
	}
	made, err := r.Prepare(ctx, e, install.Request{Way: f.way, ValueSource: plan.ValueSource{
		GivenValues: plan.GivenValues{Env: f.env, Headers: f.headers, Args: args}, Ask: o.askInput(ctx, e.Name, f.silent),
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
	o.printRemark("%s", text)
	for _, note := range made.Notes {
		o.printRemark("%s", note)
	}
	for _, name := range slices.Sorted(maps.Keys(made.Spec.Env)) {
		reason, steers := steer.Reason(name)
		if _, typed := f.env[name]; !typed && steers {
			o.printRemark("it is given %s, which changes %s", messages.Line(name, 60), reason)
		}
	}
	return made.Name, made.Spec, o.askToAdd(ctx, f, approvalScreen{title: made.Name, source: e.Name + " of " + r.Host(), entry: entryText(made.Spec),
		review: config.Review{Name: made.Name, Scope: messages.ScopeUser}, mask: maskTyped(made.Secrets)})
}

// parseArgs are the values of --arg.
func (f *installFlags) parseArgs() (map[string][]string, error) {
	out := map[string][]string{}
	for _, a := range f.args {
		name, value, ok := strings.Cut(a, "=")
		name = strings.TrimLeft(name, "-")
		if !ok || name == "" {
			// The value is not shown: it may be a secret without its name.
			return nil, &exitError{exitUsage, "--arg: write NAME=VALUE, with the name that the registry's entry gives the input"}
		}
		out[name] = append(out[name], value)
	}
	return out, nil
}

// confirmName asks whether a server that was called by a short name is the one that is meant: others may share the word, and
// anybody may publish one that sounds like it.
func (o *options) confirmName(ctx context.Context, called, full string, silent bool) error {
	if silent || strings.Contains(called, "/") || !o.prompter.hasTerminal() {
		return nil
	}
	word := "no"
	err := o.prompter.promptForCommand(ctx, full, func(t *conversation) error {
		var err error
		word, err = t.chooseWord("Is it the one that you mean? [y]es or [n]o", "yes", "no")
		return err
	})
	code := exitFailed
	switch {
	case err != nil:
		code = exitInterrupted
	case word == "yes":
		return nil
	}
	return &exitError{code, "nothing was added; write the whole name, such as " + messages.Line(full, 200)}
}
