package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// An agent whose project folder is deleted goes on, also with a daemon that never saw the folder: with the person's own servers, and with those
// of the folder when it is there again. Once every request of it failed with "there is no such file or directory".
func TestAnAgentOutlivesItsFolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.userServers(goodServer)
	const page = `{"mcpServers": {"page": {"command": "fixture", "args": ["mcp-fixture", "good"]}}}`
	site := p.inProject("site", page)
	const own, echo = `{"name":"page__echo","arguments":{"text":"x"}}`, `{"name":"good__echo","arguments":{"text":"hello"}}`
	a := p.agentWith(`{}`, "connect", "--project", site.dir)
	a.awaits("tools/call", own, `"x"`)
	if err := os.RemoveAll(site.dir); err != nil {
		t.Fatal(err)
	}
	first := p.daemonPID()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.awaits("tools/call", echo, `"hello"`)
	if got := a.ask("tools/list", `{}`); strings.Contains(got, "page__") {
		t.Errorf("servers of a folder that is gone: %s", got)
	}
	if p.daemonPID() == first {
		t.Error("it is the daemon that was killed")
	}

	// A checkout of a branch takes folders away and brings them back.
	if err := os.MkdirAll(site.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(site.dir, ".mcp.json"), []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	a.awaits("tools/call", own, `"x"`)
	a.ends()
	if said := a.stderr.String(); !strings.Contains(said, "the directory "+site.dir+" is gone, and its servers with it") {
		t.Errorf("standard error: %s", said)
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}
