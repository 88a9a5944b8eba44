// Package chaos holds the commands under "mcpvisor chaos", which look for violations of the protocol and of this manager's
// promises: check, faults, proxy, report, run, scenarios, score and sim.
//
// How it fits: the commands are the surface of test/chaos, which holds the scenarios, the scripted servers and the invariants.
// A command reads its flags, runs one tier of the harness and prints its report. No other package of the command knows them, so
// that a build without the harness only has to leave out this folder.
//
//	check.go, proxy.go     for servers of other people: what goes wrong in practice, and a proxy that makes it go wrong
//	score.go               for clients of other people, by their adapters
//	sim.go, campaign.go    random days in virtual time, in worker processes
//	run.go, scenarios.go   one day on real processes, and the days that are built in
//	faults.go, report.go   the catalogue, and a report of a day that was recorded
//
// Guarantees: everything happens on this machine, and what a command started has ended when it ends, also after an interrupt. The
// command that plays a failed day again is printed with the failure.
//
// Not promised: that a day which passed passes with another seed.
package chaos

import (
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
)

// chaosHelp is the overview of all chaos commands. The exit codes in it hold for each of them, with additions in their own
// help.
const chaosHelp = `What survives a bad day? chaos breaks MCP servers and connections on purpose, and says what must never happen and
did not, or did.

  mcpvisor chaos sim                       this manager over random bad days, in virtual time
  mcpvisor chaos run flapping              the same on real processes and sockets of this machine
  mcpvisor chaos check                     how resilient are the servers of this project?
  mcpvisor chaos proxy -- COMMAND ARGS…    put faults between any agent and any server
  mcpvisor chaos score -- ADAPTER          score any MCP client on the same misbehaving servers
  mcpvisor chaos scenarios                 the bad days that come with it, to run or to change

Everything that breaks is named (mcpvisor chaos faults), everything random comes from a seed, and every failure ends with
the command that replays it. All of it stays on this machine's loopback, apart from the servers that you name yourself.

Exit codes: 0 passed · 1 an invariant was violated, or a run hangs · 2 usage, or the harness itself failed · 3 inconclusive: what was to
be tried did not happen`

// chaosCommands lists the subcommands of chaos, in the order in which its help lists them.
var chaosCommands = []func(*cli.Options) *cobra.Command{newChaosSim, newChaosRun, newChaosCheck, newChaosScore, newChaosProxy, newChaosReport, newChaosScenarios, newChaosFaults}

// NewCommand returns the command "chaos" with its subcommands. Its exit codes differ from those of other commands; see chaosHelp.
func NewCommand(o *cli.Options) *cobra.Command {
	c := &cobra.Command{
		Use:   "chaos",
		Short: "Break servers and connections on purpose, and see what survives",
		Long:  chaosHelp,
		Example: `  mcpvisor chaos sim
  mcpvisor chaos run flapping`,
		Args: cobra.ArbitraryArgs,
		RunE: cli.ShowHelp,
	}
	for _, command := range chaosCommands {
		c.AddCommand(command(o))
	}
	return c
}
