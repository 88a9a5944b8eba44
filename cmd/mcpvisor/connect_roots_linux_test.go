package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// answersRoots waits until the bridge asks for the roots, and answers.
func (a *agentProcess) answersRoots(uris ...string) {
	a.t.Helper()
	roots := make([]string, len(uris))
	for i, uri := range uris {
		roots[i] = fmt.Sprintf(`{"uri":%q}`, uri)
	}
	timeout := time.After(patience)
	for {
		select {
		case m, ok := <-a.lines:
			if !ok {
				a.t.Fatal("the bridge has ended")
			}
			if m["method"] == "roots/list" {
				a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"roots":[%s]}}`, m["id"], strings.Join(roots, ",")))
				return
			}
		case <-timeout:
			a.t.Fatal("nobody asks for roots")
		}
	}
}

// movesTo says that the roots have changed, and answers.
func (a *agentProcess) movesTo(uris ...string) {
	a.t.Helper()
	a.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	a.answersRoots(uris...)
}

// TestRootsChooseTheProject has an agent that works elsewhere than where it was started: it gets the servers of its first root, with the
// variable that these mention; a project that is not approved starts nothing and is said; and without roots it is back. An agent with --project, or without roots, stays where it is.
func TestRootsChooseTheProject(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "").setEnv("WORD=hidden-word")
	p.userServers(goodServer)
	script := filepath.Join(p.home, "page.sh")
	release := filepath.Join(p.home, "release")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n[ \"$1\" = hidden-word ] || exit 1\nexec fixture mcp-fixture good\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	site := p.inProject("site", `{"mcpServers": {"page": {"command": "`+script+`", "args": ["${WORD}"]}}}`)
	strange := p.inProject("strange", "")
	if err := os.WriteFile(filepath.Join(strange.dir, ".mcp.json"),
		[]byte(`{"mcpServers": {"bad": {"command": "touch", "args": ["`+release+`"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}

	a := p.agentWith(`{"roots":{"listChanged":true}}`, "connect")
	a.answersRoots("vscode-remote://ssh/home", "file://"+filepath.Join(p.home, "nothing"), "file://"+site.dir, "file://"+strange.dir)
	a.awaits("tools/list", `{}`, `"page__echo"`)
	a.awaits("tools/list", `{}`, `"good__echo"`)

	a.movesTo("file://" + strange.dir)
	a.awaits("tools/call", `{"name":"page__echo","arguments":{"text":"x"}}`, "page__echo")
	if got := a.ask("tools/list", `{}`); strings.Contains(got, "page__") || !strings.Contains(got, "good__echo") {
		t.Errorf("in a project without approved servers the list is %s", got)
	}
	a.movesTo("file://" + site.dir)
	a.awaits("tools/list", `{}`, `"page__echo"`)
	a.movesTo()
	for deadline := time.Now().Add(patience); strings.Contains(a.ask("tools/list", `{}`), "page__"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("without roots it keeps the servers of its last root")
		}
	}
	b := p.agentWith(`{"roots":{}}`, "connect", "--project", site.dir)
	b.awaits("tools/list", `{}`, `"page__echo"`)
	b.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	b.ask("ping", `{}`)
	c := p.agent()
	if got := c.ask("tools/list", `{}`); strings.Contains(got, "page__") {
		t.Errorf("an agent without roots has those of another's: %s", got)
	}
	for _, agent := range []*agentProcess{a, b, c} {
		agent.ends()
	}
	if _, err := os.Stat(release); err == nil {
		t.Error("a server that is not approved was started")
	}
	if got := a.stderr.String(); !strings.Contains(got, `"bad" waits for your approval`) {
		t.Errorf("standard error: %s", got)
	}
	for len(b.lines) > 0 {
		if m := <-b.lines; m["method"] == "roots/list" {
			t.Error("an agent with --project was asked for its roots")
		}
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}

// TestAServerThatAsksEarlyGetsTheRoots has a server that asks for the roots when it begins and when they have changed, and never during a call,
// as npm's filesystem server does, which works in no directory otherwise. It gets the directory of an agent that has declared roots while that is
// there, and none of one that has declared none; a server of the user's, which agents of other projects share, gets none.
func TestAServerThatAsksEarlyGetsTheRoots(t *testing.T) {
	t.Parallel()
	const early = `{"command": "fixture", "args": ["mcp-fixture", "asks", "early=1"]}`
	p := newPlace(t, "")
	p.userServers(`{"mcpServers": {"shared": ` + early + `}}`)
	site := p.inProject("site", `{"mcpServers": {"rooted": `+early+`}}`)
	uri := "file://" + site.dir
	known := `{"name":"rooted__known","arguments":{}}`

	// What a server without roots has, an empty list or an error, depends on whether a call of an agent is under way when it asks.
	without := func(a *agentProcess) {
		t.Helper()
		for deadline := time.Now().Add(patience); strings.Contains(a.ask("tools/call", known), uri); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the server has roots of no agent")
			}
		}
	}
	none := p.agentWith(`{}`, "connect", "--project", site.dir)
	without(none)
	a := p.agentWith(`{"roots":{"listChanged":true}}`, "connect", "--project", site.dir)
	none.awaits("tools/call", known, uri) // a itself calls nothing: then the server would ask it
	if got := a.ask("tools/call", `{"name":"shared__known","arguments":{}}`); strings.Contains(got, uri) {
		t.Errorf("a server that other projects share has %s", got)
	}
	a.ends()
	without(none)
	none.ends()
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}
