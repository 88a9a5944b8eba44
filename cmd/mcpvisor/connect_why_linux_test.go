package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestWhyKnowsTheUsersServersAfterTheDaemon ends the daemon, in good order and by SIGKILL: why tells then from a journal what became of the user's
// server, in every project, and of a project's server of the same name what became of that.
func TestWhyKnowsTheUsersServersAfterTheDaemon(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	marker := filepath.Join(p.home, "started")
	p.userServers(`{"mcpServers": {"broken": {"command": "sh", "args": ["-c", "echo user-says-no >&2; echo x >> ` + marker + `; exit 3"]}}}`)
	own := p.inProject("own", `{"mcpServers": {"broken": {"command": "sh", "args": ["-c", "echo project-says-no >&2; exit 4"]}}}`)
	other := p.inProject("other", "")
	for _, end := range []func(){
		func() {
			if out, err := p.command("down").CombinedOutput(); err != nil {
				t.Errorf("down: %v: %s", err, out)
			}
		},
		func() {
			if err := syscall.Kill(p.daemonPID(), syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			p.left() // the guardian ends the servers
		},
	} {
		_ = os.Remove(marker)
		a, b := other.agent(), own.agent()
		for _, agent := range []*agentProcess{a, b} {
			agent.awaits("tools/call", `{"name":"broken__x"}`, "broken")
			agent.ends()
		}
		end()
		before, _ := os.ReadFile(marker)
		for at, want := range map[*place]string{other: "user-says-no", own: "project-says-no"} {
			out, err := at.command("why", "broken").CombinedOutput()
			if got := string(out); !strings.Contains(got, "from the journal") || !strings.Contains(got, want) {
				t.Errorf("%v: without %q: %s", err, want, got)
			}
		}
		if after, _ := os.ReadFile(marker); string(after) != string(before) || len(before) == 0 {
			t.Errorf("the server was started %d times, and %d times by why", len(before)/2, (len(after)-len(before))/2)
		}
	}
}
