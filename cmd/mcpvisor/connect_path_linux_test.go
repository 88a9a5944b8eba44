package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestAServerRunsOnceForEachProgram has agents with different PATH: whose command is another program has an instance of its own, which gets that
// agent's PATH; another name of the same program, or a PATH without the program, shares the instance that is there.
func TestAServerRunsOnceForEachProgram(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	starts := filepath.Join(p.home, "starts")
	withPath := func(names ...string) *place {
		path := ""
		for _, name := range names {
			path += filepath.Join(p.home, name) + ":"
		}
		return p.setEnv("PATH=" + path + os.Getenv("PATH"))
	}
	for _, name := range []string{"old", "new"} {
		file := filepath.Join(p.home, name, "the-tool")
		if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\necho \""+name+" ${PATH%%:*}\" >> "+starts+"\nexec fixture mcp-fixture good\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("old", filepath.Join(p.home, "link")); err != nil {
		t.Fatal(err)
	}
	p.userServers(`{"mcpServers": {"tool": {"command": "the-tool"}, "good": {"command": "fixture", "args": ["mcp-fixture", "good"]}}}`)
	var agents []*agentProcess
	for _, at := range []*place{withPath("old"), withPath("new"), withPath("link"), withPath(), withPath("new", "old")} {
		a := at.agent()
		a.awaits("tools/call", `{"name":"tool__echo","arguments":{"text":"hello"}}`, `"hello"`)
		a.awaits("tools/call", `{"name":"good__echo","arguments":{"text":"hello"}}`, `"hello"`)
		agents = append(agents, a)
	}
	text, err := os.ReadFile(starts)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"old " + filepath.Join(p.home, "old"), "new " + filepath.Join(p.home, "new")}
	if got := strings.Split(strings.TrimSpace(string(text)), "\n"); !slices.Equal(got, want) {
		t.Errorf("it was started as %q, not %q", got, want)
	}
	for _, a := range agents {
		a.ends()
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}
