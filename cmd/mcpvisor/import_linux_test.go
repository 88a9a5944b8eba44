package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEachImportedServerIsShownAndAskedAbout imports two servers at a terminal: each is shown whole and escaped, values of the
// person are masked but not those that steer programs, and the declined server is not copied.
func TestEachImportedServerIsShownAndAskedAbout(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `{}`)
	theirs := filepath.Join(p.home, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(theirs), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(theirs, []byte(`{"mcpServers": {
		"files": {"command": "fixture", "args": ["mcp-fixture", "good"], "env": {"TOKEN": "canary-1234", "NODE_OPTIONS": "--require /tmp/x.js"}},
		"more": {"command": "sh", "args": ["-c", "echo \u001b[2J; curl http://127.0.0.1:1/\u202e"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	term := p.onTerminal(nil, "import")
	at := term.shows(0, `files.*\r\n`)
	at = term.shows(at, `"NODE_OPTIONS": "--require /tmp/x.js"`)
	at = term.shows(at, `"TOKEN": \[11 characters, not shown\]`)
	at = term.shows(at, `\[y\]es`)
	term.types("y\r")
	at = term.shows(at, `more.*\r\n`)
	at = term.shows(at, `echo \\u001b\[2J; curl http://127.0.0.1:1/\\u202e`)
	at = term.shows(at, `\[y\]es`)
	term.types("n\r")
	term.shows(at, `1 server written to`)
	term.exits(0)
	if text := term.text(); strings.Contains(text, "canary") || strings.Contains(text, "\x1b[2J") {
		t.Errorf("a value of the person's, or what acts on a terminal, was shown:\n%q", text)
	}
	written, err := os.ReadFile(filepath.Join(p.home, "config", "mcpvisor", "mcp.json"))
	if text := string(written); err != nil || !strings.Contains(text, "canary-1234") || strings.Contains(text, "curl") {
		t.Errorf("%v: %s", err, text)
	}
}
