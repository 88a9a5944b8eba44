package guardian

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// DumpableVariable names the variable that switches hiding off, for debuggers and profilers that attach to this program.
const DumpableVariable = "MCPVISOR_DUMPABLE"

// publicCommands lists the commands with nothing to hide: they read no configuration and no sign-in, and start no server of a
// person.
var publicCommands = []string{"help", "--help", "-h", "version", "--version", "completion", "chaos", DemoServerCommand}

// ProtectProcess keeps this process from the servers that it starts: they cannot read its environment and memory, and do not
// inherit the descriptors that it was started with. If the system refuses, that is printed and the command runs all the same.
func ProtectProcess(args []string, stderr io.Writer) {
	if mustHide(args, os.Getenv(DumpableVariable)) {
		if err := stdio.HideProcess(); err != nil {
			fmt.Fprintf(stderr, "mcpvisor: servers can read this program's environment: %v\n", err)
		}
	}
	if err := stdio.WithholdDescriptors(); err != nil {
		fmt.Fprintf(stderr, "mcpvisor: servers are given the descriptors that this program was started with: %v\n", err)
	}
}

// mustHide reports whether a run with these arguments hides itself. Only the plain name of a public command is exempt, because
// a flag in front of it could take the name as its value.
func mustHide(args []string, dumpable string) bool {
	if stays, err := strconv.ParseBool(dumpable); err == nil && stays {
		return false
	}
	return len(args) > 0 && !slices.Contains(publicCommands, args[0])
}

// DemoServerCommand is the hidden command by which this program becomes a child process of the demo.
const DemoServerCommand = "__demo-server"
