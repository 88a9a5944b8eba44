// Command mcpvisor keeps the MCP servers of a project connected, and calls their tools. "mcpvisor help" lists the commands, and
// "mcpvisor help TOPIC" explains a subject.
//
// How it fits: main gives the command line to run, which builds the tree of cobra commands (newRoot) and maps the error that a
// command returns to an exit code (codeOf). Each command stands in a file of its own name and follows the same steps:
//
//	loadSetup      reads flags and files into a setup, with supervisor/discover
//	openProject    connects to a running "mcpvisor up" over supervisor/control, if one runs in this project
//	startServers   otherwise starts a supervisor.Manager in this process, under a guardian
//	Backend        answers the command's questions, the same way in both cases
//	close          ends what this process started, within closeTime
//
// The package owns what a person sees: the text and JSON that are printed, the questions on the terminal (prompter), the
// escaping of what servers wrote (escapeWriter) and the exit codes. It holds no rules about servers; those belong to supervisor
// and actors.
package main

import (
	"os"

	chaoslive "github.com/mcpvisor/mcpvisor/test/chaos/live"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// main first becomes a helper process if the arguments ask for one: both Main functions exit the process then, and return false
// at once otherwise. protectProcess runs before any command because a server must not be started unprotected.
func main() {
	servers.Main(os.Args[1:])   // a fixture of mcpvisor chaos score
	chaoslive.Main(os.Args[1:]) // a misbehaving server of mcpvisor chaos run, if it was started as one
	protectProcess(os.Args[1:], os.Stderr)
	os.Exit(run(os.Args[1:], standardStreams()))
}
