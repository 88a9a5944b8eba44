package inspect

import (
	"context"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// findingLevel is the verdict of a check of doctor.
type findingLevel string

const (
	checkOK    findingLevel = "ok"
	checkNote  findingLevel = "note"  // something is missing that no server of this project needs
	checkFault findingLevel = "fault" // a server of this project cannot work like this
)

// finding is the result of one check of doctor.
type finding struct {
	// Check names what was looked at, Text says what was found there.
	Check   string       `json:"check"`
	Verdict findingLevel `json:"verdict"`
	Text    string       `json:"text"`
	// Fix says what to do; empty if there is nothing to do.
	Fix string `json:"fix,omitempty"`
}

// doctorTime bounds each check, because a program that is asked for its version, or a proxy, may not answer.
const doctorTime = 10 * time.Second

// NewDoctor returns the command "doctor", which runs runDoctor. Its checks are in doctor_checks.go.
func NewDoctor(o *cli.Options) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at what commonly goes wrong on a machine, and say what to do",
		Long: `Looks at what commonly goes wrong on a machine before any server is asked: the programs that the configured servers are
started with, the cache of npx, Docker, proxies, certificates, the keyring, limits, the configuration files, servers that wait
for an approval, ports of this machine at which nothing listens, and a mcpvisor up of another version.

No server is started, and no program but with its option for its version. Whether the port of a server or proxy takes connections
is tried, and nothing is sent to it. "fault" is what a configured server needs, "note" what none of them needs now. Exit code 1:
there is a fault.`,
		Example: `  mcpvisor doctor
  mcpvisor doctor --json | jq '.[] | select(.verdict == "fault")'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd.Context(), o, asJSON) },
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print a JSON array")
	return cmd
}

// runDoctor runs the checks one after another and prints all findings at the end. Each has a bound of its own, so that one that
// hangs does not take the time of the others.
func runDoctor(ctx context.Context, o *cli.Options, asJSON bool) error {
	s, err := project.LoadSetup(o)
	if s == nil {
		return err
	}
	// The checks look at the setup as it was read here, so that they agree with each other.
	e := newDoctorRun(o, s)
	all := []finding{}
	for _, check := range e.allChecks() {
		within, cancel := context.WithTimeout(ctx, doctorTime)
		all = append(all, check(within)...)
		cancel()
		if stop := exit.InterruptedError(ctx); stop != nil {
			return stop
		}
	}
	faults := 0
	for _, f := range all {
		if f.Verdict == checkFault {
			faults++
		}
	}
	if asJSON {
		if err := terminal.PrintJSON(o.Out, all); err != nil {
			return err
		}
	} else {
		printFindings(o, all, faults)
	}
	if faults > 0 {
		return &exit.Error{Code: exit.Failed}
	}
	return nil
}

// printFindings prints the findings, each with its fix on the next line.
func printFindings(o *cli.Options, all []finding, faults int) {
	colours := map[findingLevel]text.Colors{checkOK: {text.FgGreen}, checkNote: {text.FgYellow}, checkFault: {text.FgRed}}
	for _, f := range all {
		fmt.Fprintf(o.Out, "%s %s: %s\n", terminal.PaintText(o.Out, colours[f.Verdict], fmt.Sprintf("%-5s", f.Verdict)), f.Check,
			messages.Line(f.Text, 0))
		if f.Fix != "" {
			fmt.Fprintf(o.Out, "      %s\n", messages.Line(f.Fix, 0))
		}
	}
	if faults == 0 {
		fmt.Fprintln(o.Out, "\nNothing stands in the way. Whether the servers themselves work: mcpvisor list")
		return
	}
	fmt.Fprintf(o.Out, "\n%s to mend.\n", terminal.CountOf(faults, "fault"))
}
