//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestTheEndOfAnUpIsNotWhatItsServersWere checks that the journal of a run that ended in good order says how its servers were
// before the end, and that commands during the end read that up is ending.
func TestTheEndOfAnUpIsNotWhatItsServersWere(t *testing.T) {
	t.Parallel()
	p := newPlace(t, `{"mcpServers": {
		"well": {"command": "fixture", "args": ["mcp-fixture", "good"]},
		"stubborn": {"command": "fixture", "args": ["mcp-fixture", "ignores-signals"], "stopGrace": "10s"}}}`)
	up := p.start("--config", "c.json", "up")
	ping := func() bool { return p.command("--config", "c.json", "ping", "well", "stubborn").Run() == nil }
	for bound := time.Now().Add(patience); !ping(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(bound) {
			t.Fatal("no mcpvisor up answers")
		}
	}
	up.says("stubborn: connected")
	up.signal(syscall.SIGINT)
	for bound := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // stubborn takes its time
		out, _ := p.command("--config", "c.json", "reload").CombinedOutput()
		if strings.Contains(string(out), "is ending") {
			break
		}
		if text := string(out); strings.Contains(text, "--no-watch") || time.Now().After(bound) {
			t.Fatalf("while it ends: %s", text)
		}
	}
	out, err := p.command("--config", "c.json", "get", "well").CombinedOutput()
	if err != nil || strings.Contains(string(out), "no server is configured") {
		t.Errorf("while it ends: %v, %s", err, out)
	}
	up.ends()
	out, err = p.command("--config", "c.json", "why", "well").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "\nwell: connected\n") || strings.Contains(string(out), "disabled") {
		t.Errorf("%v\n%s", err, out)
	}
}
