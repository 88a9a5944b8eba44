package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/mcpvisor/mcpvisor/transports"
)

// dumpableVariable switches hiding off, for debuggers and profilers that attach to this program.
const dumpableVariable = "MCPVISOR_DUMPABLE"

// publicCommands are the commands that hold nothing to hide: they read no configuration and no sign-in, and start no server of a person.
var publicCommands = []string{"help", "--help", "-h", "version", "--version", "completion", "chaos", demoServerCommand}

// protectProcess keeps this process from what it starts: no server reads its environment and memory, none is given the descriptors
// that it was started with. What cannot be kept is said, and the command runs all the same.
func protectProcess(args []string, stderr io.Writer) {
	if mustHide(args, os.Getenv(dumpableVariable)) {
		if err := transports.HideProcess(); err != nil {
			fmt.Fprintf(stderr, "mcpvisor: servers can read this program's environment: %v\n", err)
		}
	}
	if err := transports.WithholdDescriptors(); err != nil {
		fmt.Fprintf(stderr, "mcpvisor: servers are given the descriptors that this program was started with: %v\n", err)
	}
}

// mustHide reports whether a run with these arguments hides itself. Anything but the plain name of a command that is known to hold
// nothing does: a flag before it could be one that takes a value.
func mustHide(args []string, dumpable string) bool {
	if stays, err := strconv.ParseBool(dumpable); err == nil && stays {
		return false
	}
	return len(args) > 0 && !slices.Contains(publicCommands, args[0])
}
