package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// guarded is the configuration of a project whose rules ask before every call.
const guarded = `{"permissions": {"default": "ask", "ask": ["one:fail"]}, "mcpServers": {
	"one": {"command": "fixture", "args": ["mcp-fixture", "good"], "era": "legacy"}}}`

// TestTheCallerOfARunningUpIsAsked checks that a running up asks at the terminal of the caller, that --allow of the caller
// counts, and that a caller without a terminal reads how to allow the call.
func TestTheCallerOfARunningUpIsAsked(t *testing.T) {
	t.Parallel()
	p := newPlace(t, guarded)
	up := p.start("--config", "c.json", "up")
	up.says("one: connected")
	alone := p.start("--config", "c.json", "call", "one", "echo", "text=a")
	if code := alone.ends(); code != 3 || !strings.Contains(alone.stderr.String(), "there is no terminal to ask at (not sent); "+
		"allow it with --allow one:echo") {
		t.Errorf("exit code %d: %s", code, alone.stderr.String())
	}
	allowed := p.start("--config", "c.json", "call", "one", "echo", "text=b", "--allow", "mcp__one")
	if line := <-allowed.lines; line != "b" {
		t.Errorf("%q", line)
	}
	term := p.asks("call", "one", "echo", "text=c")
	at := term.shows(0, `May the tool "echo" of the server "one" be called\?`)
	term.shows(at, `\[o\]nce, for this \[s\]ession, \[a\]lways`)
	term.types("s\r")
	term.shows(at, `c\r\n`)
	term.exits(0)
	second := p.start("--config", "c.json", "call", "one", "echo", "text=d") // at another terminal, or at none
	if code := second.ends(); code != 3 {
		t.Errorf("a yes for the session of one terminal counted at another: exit code %d: %s", code, second.stderr.String())
	}
	up.signal(syscall.SIGINT)
	if code := up.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestACallIsAskedAboutAtTheTerminal checks the question about a call: the call is shown escaped, "no" sends nothing, and
// "always" writes a rule into the person's own file, after which the question does not come again.
func TestACallIsAskedAboutAtTheTerminal(t *testing.T) {
	seeds.Shows(t, "002.11.permissions-ui")
	t.Parallel()
	p := newPlace(t, guarded)
	term := p.asks("call", "one", "echo", "text=a\x1b[2Jb")
	at := term.shows(0, `May the tool "echo" of the server "one" be called\?\r\n  \| \{"text":"a\\u001b\[2Jb"\}\r\n`)
	at = term.shows(at, `  asked because the default is ask \(.*c\.json:1:29, dynamic\)\r\n`)
	at = term.shows(at, `\[o\]nce, \[a\]lways \(a rule in your own file\) or \[n\]o\? `)
	term.types("\r")
	at = term.shows(at, `Type once, always or no\.`)
	term.types("n\r")
	term.shows(at, `the default is ask \(.*\), and the answer was no \(not sent\)`)
	term.exits(3)

	term = p.asks("call", "one", "fail", "text=x")
	term.shows(0, `\[o\]nce or \[n\]o\? `) // a rule asks: another rule would change nothing
	term.types("o\r")
	term.exits(1) // it was called, and fails as it is asked to

	term = p.asks("call", "one", "echo", "text=x")
	at = term.shows(0, `\[a\]lways`)
	term.types("a\r")
	at = term.shows(at, `the rule allow one:echo stands in .*mcp\.json now\r\n`)
	term.shows(at, `x\r\n`)
	term.exits(0)
	term = p.asks("call", "one", "echo", "text=y")
	term.shows(0, `y\r\n`)
	term.exits(0)
	if strings.Contains(term.text(), "May the tool") {
		t.Error("it is asked again")
	}
	mine, err := filepath.Glob(filepath.Join(p.home, "*", "mcpvisor", "mcp.json"))
	if err != nil || len(mine) != 1 {
		t.Fatalf("%v, %v", mine, err)
	}
	info, err := os.Stat(mine[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestStructuredAnswersAreIndentedOnATerminal checks the form for a person; results.txtar checks that a pipe gets the server's
// own bytes.
func TestStructuredAnswersAreIndentedOnATerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `{"mcpServers": {"bad": {"command": "fixture", "args": ["mcp-fixture", "bad-results"], "era": "legacy"}}}`)
	term := p.asks("call", "bad", "big-number")
	term.shows(0, `\{\r\n  "sum": 9007199254740993\r\n\}\r\n`)
	term.exits(0)
}
