package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/registry"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// installs is a program that prints the result of InstallSpec for the name in its first argument. A second argument forbids
// questions.
func installs() {
	s := terminal.StandardStreams()
	questions := &exit.Interrupts{}
	ctx, stop := exit.InterruptContext(s.Err, questions)
	defer stop()
	o := &cli.Options{Streams: s, Prompter: ask.NewPrompter(ctx, s, questions)}
	name, spec, err := registry.InstallSpec(ctx, o, os.Args[1], registry.Flags{Silent: len(os.Args) > 2})
	if err == nil {
		fmt.Fprintln(o.Out, "INSTALLED", name, spec.Command, spec.Args, spec.Env["TOKEN"] == "typed in secret")
	}
	os.Exit(o.ReportError(err))
}

// installing returns the options of a run without a terminal, and the buffer that gets its output.
func installing(t *testing.T) (*cli.Options, *bytes.Buffer) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(serveRegistry))
	t.Cleanup(s.Close)
	t.Setenv("MCPVISOR_REGISTRY", s.URL)
	t.Setenv("MCPVISOR_REGISTRY_TOKEN", "")
	t.Setenv("CARGO_INSTALL_ROOT", "")
	t.Setenv("CARGO_HOME", filepath.Join(t.TempDir(), "cargo"))
	var said bytes.Buffer
	streams := terminal.Streams{In: strings.NewReader(""), Out: &said, Err: &said}
	return &cli.Options{Streams: streams, Prompter: ask.NewPrompter(t.Context(), streams, &exit.Interrupts{})}, &said
}

// typedFlags returns the flags of a command line, with the variables of --env.
func typedFlags(t *testing.T, env map[string]string, args ...string) registry.Flags {
	t.Helper()
	f := registry.Flags{Env: env}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.AddTo(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return f
}

// TestInstallSpecWithoutATerminal checks that inputs given by flags suffice, that a reference to a variable is not replaced,
// and that a missing input is named with its flag.
func TestInstallSpecWithoutATerminal(t *testing.T) {
	o, said := installing(t)
	f := typedFlags(t, map[string]string{"TOKEN": "${MY_TOKEN}"}, "--arg", "kind=good", "--package", "cargo", "--yes")
	name, spec, err := registry.InstallSpec(t.Context(), o, "command", f)
	want := messages.Spec{Type: messages.Stdio, Command: filepath.Join(os.Getenv("CARGO_HOME"), "bin", "fixture"), Args: []string{"mcp-fixture", "good"},
		Env: map[string]string{"TOKEN": "${MY_TOKEN}"}}
	if err != nil || name != "command" || !reflect.DeepEqual(spec, want) {
		t.Errorf("%q %+v, %v", name, spec, err)
	}
	for _, line := range []string{
		"mcpvisor: io.github.o/command 1.2.0 from 127.0.0.1:", ": Runs\n",
		"mcpvisor: cargo package fixture 1.2.0, as asked for\n",
		"mcpvisor: install the program first: cargo install --locked fixture@1.2.0\n",
	} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("%q is not said:\n%s", line, said)
		}
	}
	for _, c := range []struct {
		name string
		f    registry.Flags
		err  error
		text string
	}{
		{"command", typedFlags(t, nil, "--arg", "kind=good"), plan.ErrMissing, "the environment variable TOKEN is required; give it with --env TOKEN=…"},
		{"command", typedFlags(t, map[string]string{"TOKEN": "canary\x07"}, "--arg", "kind=good"), plan.ErrValue, "it holds a control character"},
		{"command", registry.Flags{}, plan.ErrMissing, "the argument kind is required; give it with --arg kind=…"},
		{"command", typedFlags(t, nil, "--arg", "kind=bad"), plan.ErrValue, "it is none of good, slow"},
		{"command", typedFlags(t, nil, "--arg", "canary"), nil, "--arg: write NAME=VALUE"},
		{"command", typedFlags(t, nil, "--package", "npm"), plan.ErrUnusable, "io.github.o/command has no npm; it has: cargo package fixture 1.2.0"},
		{"weather", registry.Flags{}, plan.ErrName, "several servers are called weather: com.example/weather-mcp, io.github.o/weather; write the whole name"},
		{"io.github.o/command@2", registry.Flags{}, plan.ErrName, "has no io.github.o/command 2"},
		{"no such name", registry.Flags{}, plan.ErrName, "a server of a registry is not called no such name"},
	} {
		_, _, err := registry.InstallSpec(t.Context(), o, c.name, c.f)
		if err == nil || c.err != nil && !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.text) || exit.CodeOf(err) != exit.Usage {
			t.Errorf("%s: %d %v", c.name, exit.CodeOf(err), err)
		}
	}
	if strings.Contains(said.String(), "MY_TOKEN") || strings.Contains(said.String(), "canary") {
		t.Errorf("a value is said:\n%s", said)
	}
}
