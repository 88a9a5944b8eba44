package servers

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Marker is the first argument of a process that is to become a fixture. No flag of a test binary looks like it.
const Marker = "mcp-fixture"

// Kind describes one fixture.
type Kind struct {
	// Name is the argument of Command.
	Name string
	run  func(p params) (exitCode int)
	// Does describes how the server behaves or misbehaves, with its parameters and their defaults.
	Does string
}

// Kinds lists every fixture, sorted by name.
func Kinds() []Kind {
	all := slices.Concat(goodKinds, cheapKinds, processFaults, outputFaults, protocolFaults, listFaults, eraFaults, lapseKinds,
		modernBehaved, modernFaults)
	slices.SortFunc(all, func(a, b Kind) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Command returns the command line that runs a fixture in this same program: its path and the arguments. It panics if
// the program cannot find its own path, which does not happen on the supported systems.
func Command(kind string, parameters ...string) (command string, args []string) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return self, Args(kind, parameters...)
}

// Args returns the arguments that make a program which calls Main a fixture.
func Args(kind string, parameters ...string) []string {
	return append([]string{Marker, kind}, parameters...)
}

// Main runs the fixture that args (without the program's name) ask for, and ends the process with its exit code. It
// returns false at once if args ask for none. It never returns true; the result lets a main read naturally.
func Main(args []string) bool {
	if len(args) == 0 || args[0] != Marker {
		return false
	}
	if len(args) < 2 {
		failFixture("which fixture?")
	}
	if args[1] == sleeper {
		os.Exit(runSleeper(parseParams(args[2:])))
	}
	for _, k := range Kinds() {
		if k.Name == args[1] {
			os.Exit(k.run(parseParams(args[2:])))
		}
	}
	failFixture(fmt.Sprintf("no fixture %q", args[1]))
	return true
}

// failFixture ends a fixture that was started wrongly with exit code 64, which no fixture uses by default, so that a
// test does not take its own mistake for the behaviour of a server.
func failFixture(text string) {
	fmt.Fprintln(os.Stderr, Marker+":", text)
	os.Exit(64)
}
