package up

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/approve"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// detachUp makes the daemon keep the servers of the project, after the questions that a run at a terminal asks, too. It returns when
// they are being connected.
func detachUp(o *cli.Options, cmd *cobra.Command, f upFlags) error {
	flag := runsApart(o, f)
	switch {
	case f.json:
		flag = "--json"
	case f.duration != 0:
		flag = "--duration"
	}
	if flag != "" {
		return exit.UsageError(cmd, "--detach: the daemon reads the configuration where it is found, and %s does not reach it", flag)
	}
	s, err := project.LoadSetup(o)
	if err != nil {
		return err
	}
	s.PrintProblems(o)
	if nothing := s.NoServersText(); nothing != "" {
		return exit.With(exit.Usage, nothing+addServerHelp)
	}
	if err := approve.OfferApprovals(cmd.Context(), o, s); err != nil {
		return err
	}
	location, err := control.LocationOf(s.ProjectDir)
	if err != nil {
		return err
	}
	// An up of this project and the daemon would each start every server.
	if up, err := control.Dial(cmd.Context(), location); !errors.Is(err, control.ErrNotRunning) {
		if err != nil {
			return err
		}
		hello, err := up.Hello(cmd.Context())
		_ = up.Close() // nothing more is asked of it
		if err == nil && !control.IsDaemon(hello.PID) {
			return exit.With(exit.Usage, fmt.Sprintf("process %d runs mcpvisor up for %s already; end that one first", hello.PID, messages.Line(s.ProjectDir, 0)))
		}
	}
	// The daemon reads the files as well, and what is wrong with them was told.
	isTold := func(text string) bool {
		return slices.ContainsFunc(s.Problems, func(p config.Problem) bool { return p.Error() == text })
	}
	notes, err := client.Hold(cmd.Context(), s.ProjectDir, os.LookupEnv)
	switch {
	case err != nil && isTold(err.Error()):
		return exit.With(exit.Usage, "the daemon starts no server of a configuration that it cannot read; mend the file first")
	case err != nil:
		return err
	}
	for _, note := range notes {
		if !isTold(note) {
			o.PrintRemark("%s", note)
		}
	}
	fmt.Fprintf(o.Out, "The daemon keeps the servers of %s: see mcpvisor list. It ends with: mcpvisor down\n", messages.Line(s.ProjectDir, 0))
	return nil
}
