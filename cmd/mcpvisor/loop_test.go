//go:build unix

package main

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/loop"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// TestReadmeQuotesTheListBesideTheLoop checks that README quotes the output of list for the servers of test/loop, while an up
// keeps them.
func TestReadmeQuotesTheListBesideTheLoop(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	entries := map[string]any{}
	for _, s := range loop.Servers() {
		entries[s.Name] = map[string]any{"command": "fixture", "args": servers.Args(s.Fixture[0], s.Fixture[1:]...)}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, string(config))
	up := p.start("--config", "c.json", "up")
	defer func() {
		up.signal(syscall.SIGINT)
		up.ends()
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		out, _ := p.command("--config", "c.json", "list", "--wait", "0s", "--quiet").Output() // it exits 1: servers have failed
		list := strings.TrimRight(string(out), "\n")
		switch {
		case list != "" && strings.Contains(string(readme), "```\n"+list+"\n```\n"):
			return
		case time.Now().After(deadline):
			t.Fatalf("README does not quote:\n%s", list)
		}
	}
}
