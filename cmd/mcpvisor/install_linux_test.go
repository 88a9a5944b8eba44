package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
)

// installsOnTerminal runs the program installs on a terminal, with a registry of its own.
func installsOnTerminal(t *testing.T, args ...string) *pseudoTerminal {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(serveRegistry))
	t.Cleanup(s.Close)
	p := newPlace(t, "")
	p.program, p.env = "installs", append(p.env, "MCPVISOR_REGISTRY="+s.URL, cargoHome())
	return p.onTerminal(nil, args...)
}

// TestInstallingAsksAtTheTerminal installs a server at a terminal: the short name is confirmed, a choice is named by its
// number, and the secret stays off the screen.
func TestInstallingAsksAtTheTerminal(t *testing.T) {
	t.Parallel()
	term := installsOnTerminal(t, "command")
	at := term.shows(0, `io\.github\.o/command 1\.2\.0 from 127\.0\.0\.1:\d+: Runs\r\n`)
	at = term.shows(at, `Is it the one that you mean\? \[y\]es or \[n\]o `)
	term.types("y\r")
	at = term.shows(at, `needs the argument kind: one of these\r\n +1  good\r\n +2  slow\r\n> `)
	term.types("other\r")
	at = term.shows(at, `It is none of good, slow\.\r\n> `)
	term.types("1\r")
	at = term.shows(at, `needs the environment variable TOKEN: not shown while you type; \$\{NAME\} takes it from your environment at each start\r\n`)
	at = term.shows(at, `  \| a key\r\n> `)
	term.types("\r")
	at = term.shows(at, `An answer is required\.\r\n> `)
	term.types("typed in secret\r")
	at = term.shows(at, `runs \S*/bin/fixture mcp-fixture good\r\n`)
	at = term.shows(at, `"TOKEN": "\[what you typed\]"`)
	at = term.shows(at, `Approve and add command\? \[y\]es or \[n\]o `)
	term.types("y\r")
	term.shows(at, `INSTALLED command \S*/bin/fixture \[mcp-fixture good\] true\r\n`)
	term.exits(0)
	if strings.Contains(term.text(), "secret") {
		t.Errorf("the secret is on the screen:\n%q", term.text())
	}
}

// TestAnInstallationThatIsBrokenOff checks that neither a "no" nor Ctrl-C adds anything.
func TestAnInstallationThatIsBrokenOff(t *testing.T) {
	t.Parallel()
	term := installsOnTerminal(t, "command")
	term.shows(0, `Is it the one`)
	term.types("n\r")
	term.shows(0, `nothing was added; write the whole name, such as io\.github\.o/command`)
	term.exits(exit.Failed)

	term = installsOnTerminal(t, "io.github.o/command")
	at := term.shows(0, `needs the argument kind`)
	term.types("1\r")
	at = term.shows(at, `a key\r\n> `)
	term.types("half\x03")
	term.shows(at, `nothing was added: the environment variable TOKEN was not given`)
	term.exits(exit.Interrupted)
	if strings.Contains(term.text()[at:], "half") {
		t.Errorf("the secret is on the screen:\n%q", term.text())
	}
}

// TestAnInstallationThatIsNotWanted checks that a "no" after the screen adds nothing, and that silent asks no question.
func TestAnInstallationThatIsNotWanted(t *testing.T) {
	t.Parallel()
	term := installsOnTerminal(t, "io.github.o/command")
	at := term.shows(0, `needs the argument kind`)
	term.types("1\r")
	at = term.shows(at, `a key\r\n> `)
	term.types("typed in secret\r")
	at = term.shows(at, `Approve and add command\? \[y\]es or \[n\]o `)
	term.types("n\r")
	term.shows(at, `nothing was added`)
	term.exits(exit.Failed)

	term = installsOnTerminal(t, "command", "silent")
	term.shows(0, `the argument kind is required; give it with --arg kind=…`)
	term.exits(exit.Usage)
	if strings.Contains(term.text(), "Is it the one") || strings.Contains(term.text(), "INSTALLED") {
		t.Errorf("it asks, or goes on:\n%s", term.text())
	}
}
