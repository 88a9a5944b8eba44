//go:build nochaos

package main

import (
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/up"
)

// This file and full.go are the whole difference between the two builds of the command: this one links nothing of the harness.

// absent is the text of the error when a person asks this build for chaos or for up --demo: it tells how to install both.
const absent = `this mcpvisor was built without chaos and the demo (-tags nochaos); the full command has both: ` +
	`"go install ./cmd/mcpvisor" in a checkout of mcpvisor installs it`

// runPeer returns at once: this build becomes no server.
func runPeer([]string) {}

// newDemo refuses up --demo.
func newDemo() (up.Demo, error) { return up.Demo{}, exit.With(exit.Usage, absent) }

// harnessCommands returns a command chaos that only says what this build is.
func harnessCommands() []func(*cli.Options) *cobra.Command {
	return []func(*cli.Options) *cobra.Command{newAbsentChaos}
}

// newAbsentChaos returns the command chaos of this build. It accepts what any command of the full chaos accepts, so that every
// such command line gets the same explanation and not one about its flags.
func newAbsentChaos(*cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:                "chaos",
		Short:              "Break MCP servers on purpose (not in this build)",
		Long:               "Looks for what breaks on bad days; mcpvisor help breaking explains it. But\n" + absent + ".",
		Example:            "  mcpvisor chaos",
		Args:               cobra.ArbitraryArgs,
		FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true},
		ValidArgsFunction:  cobra.NoFileCompletions,
		RunE:               func(*cobra.Command, []string) error { return exit.With(exit.Usage, absent) },
	}
}
