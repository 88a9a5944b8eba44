// Command mcpvisor keeps the MCP servers of a project connected, and calls their tools. "mcpvisor help" lists the commands, and
// "mcpvisor help TOPIC" explains a subject.
//
// How it fits: main gives the command line to run, which makes the options and builds the tree of cobra commands (newRoot). The
// commands stand in groups below internal; each has a file of its own name there, and none knows the groups above it:
//
//	exit, terminal, status, schema, ask   codes, streams, words and questions: what is printed and typed
//	cli, guardian, project                the options of a run, and the servers that it works with
//	call, approve, inspect, signin        the groups of commands, each of which may use those before it
//	registry, clients, daemon, connect, manage, serve, chaos, demo
//	harness                               the one import of chaos and the demo, which -tags nochaos leaves out
//
// The command owns what a person sees: the text and JSON that are printed, the questions on the terminal, the escaping of what
// servers wrote, and the exit codes. It holds no rules about servers; those belong to supervisor and actors.
//
// Guarantees: the JSON forms carry a version, and the exit codes keep their meaning; the help of each command lists them.
//
// Not promised: the words for people.
package main

import (
	"os"

	cmap "github.com/orcaman/concurrent-map"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
)

// init makes actor systems small: the library divides the addresses of actors among 1,024 maps, each of which it divides into 32 once more, so
// that a system without actors takes milliseconds and megabytes. The daemon has one for each project.
func init() { cmap.SHARD_COUNT = 1 }

// main reads its arguments first, because they may ask for a server of the harness: runPeer does not return then. ProtectProcess
// runs before any command because a server must not be started unprotected.
func main() {
	args := os.Args[1:]
	runPeer(args)
	guardian.ProtectProcess(args, os.Stderr)
	os.Exit(run(args, terminal.StandardStreams()))
}
