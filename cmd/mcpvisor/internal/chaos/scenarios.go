package chaos

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

const chaosScenariosHelp = `Without a name it lists the scenarios that come with mcpvisor: bad days that were thought of, each with what is tried
and what must be seen. With a name it prints the scenario, which is a YAML file with comments: write it to a file, change
it, and run that.

  mcpvisor chaos scenarios flapping > mine.yaml
  mcpvisor chaos scenarios --check mine.yaml
  mcpvisor chaos run mine.yaml

--schema prints the JSON Schema of the format, with which an editor completes and explains every key:

  mcpvisor chaos scenarios --schema > scenario.schema.json
  and as the first line of the scenario:  # yaml-language-server: $schema=scenario.schema.json

Exit code 2: a scenario does not exist, or --check found something wrong.`

// newChaosScenarios returns the command "chaos scenarios", which lists, prints or checks scenarios and runs none.
func newChaosScenarios(o *cli.Options) *cobra.Command {
	var schema, check, asJSON bool
	cmd := &cobra.Command{
		Use:   "scenarios [NAME]",
		Short: "List the scenarios that come with mcpvisor, print one, or check your own",
		Long:  chaosScenariosHelp,
		Example: `  mcpvisor chaos scenarios
  mcpvisor chaos scenarios flapping > mine.yaml
  mcpvisor chaos scenarios --check mine.yaml`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if check {
				return nil, cobra.ShellCompDirectiveDefault
			}
			var names []cobra.Completion
			for _, s := range scenario.Library() {
				names = append(names, cobra.CompletionWithDesc(s.Name, s.About))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			// Each combination that makes no sense is refused here; cobra has no rule that covers all of them.
			case schema && check || schema && asJSON || check && asJSON:
				return exit.UsageError(cmd, "--schema, --check and --json exclude each other")
			case schema && len(args) > 0:
				return exit.UsageError(cmd, "--schema takes no arguments, and %q is one", messages.Line(args[0], 60))
			case schema:
				_, err := o.Out.Write(scenario.Schema())
				return err
			case check && len(args) == 0:
				return exit.UsageError(cmd, "--check needs the files to check")
			case check:
				return checkScenarios(o, args)
			case len(args) > 1:
				return exit.UsageError(cmd, "one scenario at a time is printed, and %d are named", len(args))
			case len(args) == 1:
				return printScenario(o, args[0])
			}
			return listScenarios(o, asJSON)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&schema, "schema", false, "print the JSON Schema of scenario files")
	f.BoolVar(&check, "check", false, "check the files that are named, and print every fault with its place (- is standard input)")
	f.BoolVarP(&asJSON, "json", "j", false, "print the list as JSON")
	return cmd
}

// scenarioItem is one scenario as chaos scenarios --json prints it.
type scenarioItem struct {
	Name string `json:"name"`
	// Tiers are those in which it can run; a scenario that names none runs in all.
	Tiers []scenario.Tier `json:"tiers"`
	About string          `json:"about"`
}

// listScenarios prints a line for each scenario, with the description wrapped to the width of the terminal (120 if unknown).
func listScenarios(o *cli.Options, asJSON bool) error {
	var list []scenarioItem
	most := 0
	for _, s := range scenario.Library() {
		l := scenarioItem{s.Name, s.Tiers, s.About}
		// An empty list in the file means all tiers; the list is spelled out for programs.
		if len(l.Tiers) == 0 {
			l.Tiers = scenario.Tiers
		}
		list = append(list, l)
		most = max(most, len(s.Name))
	}
	if asJSON {
		return terminal.PrintJSON(o.Out, list)
	}
	columns := terminal.ColumnsOf(o.Out)
	// A pipe has no width; 120 columns suit a log.
	if columns == 0 {
		columns = 120
	}
	indent := most + 2 + len("sim real") + 2
	for _, l := range list {
		tiers := ""
		for _, t := range scenario.Tiers { // each in a column of its own, so that the words stand below each other
			if slices.Contains(l.Tiers, t) {
				tiers += string(t) + " "
			} else {
				tiers += strings.Repeat(" ", len(t)+1)
			}
		}
		about := strings.Split(text.WrapSoft(l.About, max(columns-indent-1, 30)), "\n")
		fmt.Fprintf(o.Out, "%-*s  %s %s\n", most, l.Name, tiers, strings.TrimRight(about[0], " "))
		for _, line := range about[1:] {
			fmt.Fprintf(o.Out, "%s%s\n", strings.Repeat(" ", indent), strings.TrimRight(line, " "))
		}
	}
	o.PrintRemark("print one with `mcpvisor chaos scenarios NAME`, run it with `mcpvisor chaos sim NAME` or `mcpvisor chaos run NAME`")
	return nil
}

// printScenario prints the YAML of a scenario with its comments, so that it can be changed and run.
func printScenario(o *cli.Options, name string) error {
	text, ok := scenario.Text(name)
	if !ok {
		return unknownScenario(name)
	}
	_, err := io.WriteString(o.Out, text)
	return err
}

// unknownScenario returns the usage error for a name that no scenario has, with the nearest name.
func unknownScenario(name string) error {
	what := fmt.Sprintf("no scenario is called %q", messages.Line(name, 60))
	if near := scenario.Nearest(name); near != "" {
		return exit.With(exit.Usage, fmt.Sprintf("%s; did you mean %q?", what, near))
	}
	return exit.With(exit.Usage, what+"; mcpvisor chaos scenarios lists them")
}

// checkScenarios prints every problem of every file, and one line for each file without problems. Problems go to standard
// output, because they are the result of the command; the exit code is that of a wrong configuration.
func checkScenarios(o *cli.Options, files []string) error {
	problemCount := 0
	for _, file := range files {
		text, err := readScenario(file, o.In)
		if err != nil {
			return err
		}
		s, err := scenario.Vet(file, text)
		var problems scenario.Problems
		switch {
		// Vet finds all problems at once, so that a person can correct them in one go.
		case errors.As(err, &problems):
			for _, p := range problems {
				fmt.Fprintln(o.Out, p.Error())
			}
			problemCount += len(problems)
		case err != nil:
			return exit.With(exit.Usage, messages.Line(file, 0)+": "+err.Error())
		default:
			fmt.Fprintf(o.Out, "%s: %s is well: %s, %s, %s\n", messages.Line(file, 0), s.Name, terminal.CountOf(serversOf(s), "server"),
				entriesText(len(s.Faults), "fault"), entriesText(len(s.Commands), "command"))
		}
	}
	if problemCount > 0 {
		return &exit.Error{Code: exit.Usage}
	}
	return nil
}

// serversOf counts the servers of a scenario; a group without a count has one.
func serversOf(s scenario.Scenario) (n int) {
	for _, g := range s.Servers {
		n += max(g.Count, 1)
	}
	return n
}

// entriesText counts entries of a scenario. It does not say "faults", because one entry may stand for many occurrences.
func entriesText(n int, noun string) string {
	if n == 1 {
		return "1 entry of " + noun + "s"
	}
	return fmt.Sprintf("%d entries of %ss", n, noun)
}

// readScenario reads a file, or standard input for "-", up to one byte more than scenario.MaxFile, by which Vet sees that it is
// too long.
func readScenario(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(stdin, scenario.MaxFile+1))
	}
	f, err := os.Open(file)
	if err != nil {
		text := err.Error()
		if errors.Is(err, os.ErrNotExist) {
			text = "there is no such file"
		}
		return nil, exit.With(exit.Usage, fmt.Sprintf("%q: %s", messages.Line(file, 200), text))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, scenario.MaxFile+1))
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Sprintf("%q cannot be read: %v", messages.Line(file, 200), err))
	}
	return b, nil
}
