// Package guardian keeps processes of this program in order: a guardian process ends the servers of a mcpvisor that was killed,
// and a run hides its environment and descriptors from the servers that it starts.
//
// How it fits: whatever starts servers calls [Start] first and closes the guardian after the servers have ended. This program
// is its own guardian, by the hidden command of [NewCommand]. [ProtectProcess] runs once, at the beginning of main.
//
// Guarantees: if this process is killed, its guardian ends the process groups that it was told of, and then itself. A run that
// starts no server has no guardian.
//
// Not promised: that a process which left its group is found, and that the environment is hidden where the system has no means for
// it; see stdio.HideProcess.
package guardian

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// Command is the hidden command by which this program becomes a guardian.
const Command = "__guardian"

// NewCommand returns the hidden command of the guardian process, which waits on its standard input and ends the servers of a
// mcpvisor that was killed. See [stdio.Guardian].
func NewCommand(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:    Command,
		Short:  "End the servers of a mcpvisor that was killed",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := stdio.RunGuardian(o.In); err != nil {
				return exit.With(exit.Failed, "the lifeline broke: "+messages.Line(err.Error(), 200))
			}
			return nil
		},
	}
}

// Start starts this program again as the guardian of this process; every command that starts servers does. The caller
// closes the result after the servers have ended.
func Start() (*stdio.Guardian, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program does not know its own path: %w", err)
	}
	cmd := exec.Command(self, Command)
	// The guardian gets no other variable, because it needs none and may outlive this process.
	if stays := os.Getenv(DumpableVariable); stays != "" {
		cmd.Env = []string{DumpableVariable + "=" + stays}
	}
	return stdio.StartGuardian(cmd)
}
