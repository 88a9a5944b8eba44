package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// awaitNoDaemon returns when the daemon of the place has ended.
func (p *place) awaitNoDaemon(pid int) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); syscall.Kill(pid, 0) == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.t.Fatalf("the daemon, process %d, does not end", pid)
		}
	}
}

// TestUpIsAViewOfTheDaemon starts up without a daemon: it starts one, and Ctrl-C, the end of its terminal and its own kill end both. With an
// agent the daemon stays. A second up shows the same servers, the commands use them, and a daemon that is killed is replaced.
func TestUpIsAViewOfTheDaemon(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.userServers(goodServer)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
		up := p.start("up")
		up.says("good: connected: 13 tools")
		pid := p.daemonPID()
		up.signal(s)
		up.ends()
		if said := strings.Join(up.said, "\n"); s == syscall.SIGINT && !strings.Contains(said, "interrupted; ending 1 server") {
			t.Errorf("%v: %s", s, said)
		}
		p.awaitNoDaemon(pid)
	}

	first := p.start("up")
	first.says("good: connected: 13 tools")
	pid := p.daemonPID()
	second := p.start("up")
	second.says("good: connected: 13 tools")
	if out, err := p.command("call", "good", "echo", "text=hello").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), fmt.Sprintf("using the daemon (pid %d)", pid)) || !strings.Contains(string(out), "hello") {
		t.Errorf("call: %v: %s", err, out)
	}
	a := p.agent()
	a.awaits("tools/list", `{}`, `"good__echo"`)
	first.signal(syscall.SIGINT)
	if code := first.ends(); code != 0 || !strings.Contains(strings.Join(first.said, "\n"), "interrupted; the daemon keeps 1 server; mcpvisor down ends the daemon") {
		t.Errorf("with an agent: %d: %q", code, first.said)
	}
	a.awaits("tools/call", `{"name":"good__echo","arguments":{"text":"hello"}}`, `"hello"`)
	// The view and the agent go on with the next daemon.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	a.awaits("tools/call", `{"name":"good__echo","arguments":{"text":"hello"}}`, `"hello"`)
	next := p.daemonPID()
	if next == pid {
		t.Errorf("process %d is still the daemon", next)
	}
	if out, err := p.command("disable", "good", "--for-now").CombinedOutput(); err != nil {
		t.Errorf("disable: %v: %s", err, out)
	}
	second.says("good: disabled")
	a.ends()
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
	second.says("the daemon was asked to end; its 1 server ended with it")
	if code := second.ends(); code != 0 {
		t.Errorf("the view, after down: exit code %d", code)
	}
	if errText := second.stderr.String(); !strings.Contains(errText, fmt.Sprintf("another one, process %d, keeps the servers now", next)) {
		t.Errorf("standard error of the view: %s", errText)
	}
	// A flag that is about the servers' process makes one of its own.
	own := p.start("up", "--no-audit")
	own.says("good: connected: 13 tools")
	if _, err := os.Stat(p.home + "/state/mcpvisor/daemon.log"); err != nil {
		t.Error(err)
	}
	own.signal(syscall.SIGINT)
	if own.ends(); !strings.Contains(strings.Join(own.said, "\n"), "ending 1 server") {
		t.Errorf("of its own: %q", own.said)
	}
}
