package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// guardianCommand is the hidden command by which this program becomes a guardian.
const guardianCommand = "__guardian"

// newGuardian returns the hidden command of the guardian process, which waits on its standard input and ends the servers of a
// mcpvisor that was killed. See [transports.Guardian].
func newGuardian(o *options) *cobra.Command {
	return &cobra.Command{
		Use:    guardianCommand,
		Short:  "End the servers of a mcpvisor that was killed",
		Hidden: true,
		Args:   noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := transports.RunGuardian(o.in); err != nil {
				return exitWith(exitFailed, "the lifeline broke: "+messages.Line(err.Error(), 200))
			}
			return nil
		},
	}
}

// startGuardian starts this program again as the guardian of this process; every command that starts servers does. The caller
// closes the result after the servers have ended.
func startGuardian() (*transports.Guardian, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("this program does not know its own path: %w", err)
	}
	cmd := exec.Command(self, guardianCommand)
	// The guardian gets no other variable, because it needs none and may outlive this process.
	if stays := os.Getenv(dumpableVariable); stays != "" {
		cmd.Env = []string{dumpableVariable + "=" + stays}
	}
	return transports.StartGuardian(cmd)
}
