package manage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// NewConfig returns the command "config", which only has subcommands and prints its help without one.
func NewConfig(o *cli.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Look at the configuration",
		Example: `  mcpvisor config check
  mcpvisor config isolation`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.ShowHelp,
	}
	cmd.AddCommand(newConfigCheck(o), newConfigIsolation(o))
	return cmd
}

// newConfigCheck returns the command "config check", which runs configCheck. It starts and dials nothing, so that it is safe
// for files of other people.
func newConfigCheck(o *cli.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Print every fault of every configuration file at once",
		Long: `Reads every configuration file and prints every fault with file, line and column, and what to do about
it, and the servers that a policy refuses, with the line of a policy that would allow them. Nothing is started or
dialled. Exit code 2: there is a fault; warnings alone are none.`,
		Example: `  mcpvisor config check
  mcpvisor config check --only --config servers.json`,
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error { return configCheck(o, asJSON) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON array")
	return cmd
}

// configCheck prints all problems of all files. Faults make it end with exit.Usage; warnings do not. It reads the files as every
// command does, so that what it accepts is what the others see.
func configCheck(o *cli.Options, asJSON bool) error {
	s, err := project.LoadSetup(o)
	if s == nil {
		return err
	}
	faults, warnings := 0, 0
	list := []config.Problem{}
	// Policies are no problem of a file, but the person wants to know which servers will not start.
	s.Problems = append(s.Problems, policyProblems(s)...)
	if text := s.NoServersText(); text != "" && !slices.ContainsFunc(s.Problems, func(p config.Problem) bool { return !p.Warning }) {
		s.Problems = append(s.Problems, config.Problem{Text: text, Fix: strings.TrimPrefix(project.AddServerHint, "; "), Warning: true})
	}
	for _, p := range s.Problems {
		if list = append(list, p); p.Warning {
			warnings++
		} else {
			faults++
		}
	}
	if asJSON {
		if err := terminal.PrintJSON(o.Out, list); err != nil {
			return err
		}
	} else {
		printCheck(o, s, faults, warnings)
	}
	if faults > 0 {
		return &exit.Error{Code: exit.Usage}
	}
	return nil
}

// policyProblems returns a warning for each server that a policy of the organisation keeps from being started. The file itself
// is not at fault, therefore these are no errors.
func policyProblems(s *project.Setup) (all []config.Problem) {
	for _, name := range s.ServerNames() {
		spec := s.Specs[name]
		if rule := config.Refusal(spec, s.Policies...); rule != "" {
			all = append(all, config.Problem{File: spec.Source, Server: name, Text: "it is not started: " + rule, Warning: true})
		}
	}
	return all
}

// printCheck prints the problems, and notes that are none: files of other programs, and entries that another file hides.
func printCheck(o *cli.Options, s *project.Setup, faults, warnings int) {
	for _, f := range s.Files {
		if f.Program != "" {
			fmt.Fprintf(o.Out, "%s: note: read as a file of %s: %s\n", messages.Line(f.Path, 0), f.Program,
				terminal.CountOf(f.Servers, "server"))
		}
	}
	for _, p := range s.Problems {
		fmt.Fprintln(o.Out, p.Error())
	}
	for _, h := range s.Shadowed {
		fmt.Fprintf(o.Out, "%s: note: server %q is hidden by %s: %s\n", messages.Line(h.Loser, 0),
			messages.Line(h.Server, 80), messages.Line(h.Winner, 0), h.Reason)
	}
	fmt.Fprintf(o.Out, "%s in %s: %s, %s\n", terminal.CountOf(len(s.Specs), "server"), terminal.CountOf(len(s.Files), "file"),
		terminal.CountOf(faults, "fault"), terminal.CountOf(warnings, "warning"))
}
