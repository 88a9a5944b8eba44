package main

import "testing"

// oneSilent is a project with a server that connects, one that fails and one that never answers.
const oneSilent = `{"mcpServers": {
	"crash": {"command": "fixture", "args": ["mcp-fixture", "exits-at-once"]},
	"one": {"command": "fixture", "args": ["mcp-fixture", "good"], "era": "legacy"},
	"silent": {"command": "fixture", "args": ["mcp-fixture", "silent"], "connectTimeout": "1h", "era": "legacy"}}}`

// TestAListShowsAtOnceWhatIsKnown checks that list shows settled servers while a silent one is waited for.
func TestAListShowsAtOnceWhatIsKnown(t *testing.T) {
	t.Parallel()
	p := newPlace(t, oneSilent)
	term := p.asks("list", "--wait", "1h")
	term.shows(0, `one +connected `)
	term.shows(0, `crash +failed +the process ended`)
	term.shows(0, `waiting for silent `)
	term.types("\x03")
	term.exits(130)

	// The list that is printed in the end takes the place of what was shown.
	term = p.asks("list", "--wait", "10s")
	at := term.shows(0, `waiting for silent `)
	at = term.shows(at, `\x1b\[J(\x1b\[[0-9;]*m)?SERVER +STATUS`)
	term.shows(at, `silent +\S*pending`)
	term.exits(1)
}
