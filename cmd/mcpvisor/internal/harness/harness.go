// Package harness is the one import by which the command gets the test bench and the demo: what stands in test/, the clients and
// servers of other projects, and the testing package.
//
// How it fits: only main imports this package, in a file that a build with -tags nochaos leaves out. Such a build says of each
// of these commands that it has them not.
//
// Not promised: anything of its own; the guarantees are those of packages chaos and demo.
package harness

import (
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/chaos"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/demo"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/up"
	"github.com/mcpvisor/mcpvisor/test/chaos/performer"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// Commands returns the constructors of the command chaos and of the hidden command for servers of the demo.
func Commands() []func(*cli.Options) *cobra.Command {
	return []func(*cli.Options) *cobra.Command{chaos.NewCommand, demo.NewServer}
}

// NewDemo makes what up --demo runs.
func NewDemo() (up.Demo, error) { return demo.New() }

// RunPeer turns this process into a misbehaving server if its first argument asks for one, and ends it with the server's exit
// code. The harness starts this program again in that way: servers for chaos score, and peers for chaos run. Otherwise RunPeer
// returns at once, and nothing of the harness has run.
func RunPeer(args []string) {
	if len(args) == 0 {
		return
	}
	switch args[0] {
	case servers.Marker:
		servers.Main(args)
	case performer.Marker:
		performer.Main(args)
	}
}
