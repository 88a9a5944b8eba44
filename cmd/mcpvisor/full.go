//go:build !nochaos

package main

import (
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/harness"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/up"
)

// This file and lean.go are the whole difference between the two builds of the command: this one has the harness.

// runPeer does not return if args ask for a server of the harness.
func runPeer(args []string) { harness.RunPeer(args) }

// newDemo makes what up --demo runs.
func newDemo() (up.Demo, error) { return harness.NewDemo() }

// harnessCommands returns the constructors of the commands that only this build has.
func harnessCommands() []func(*cli.Options) *cobra.Command { return harness.Commands() }
