package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stubbornServer is a shell script that becomes a server which no end of its input and no SIGTERM ends.
const stubbornServer = "#!/bin/sh\ntrap '' TERM\nfixture mcp-fixture good\nexec sleep 1000\n"

// stubborn writes the script and returns its path.
func (p *place) stubborn() string {
	p.t.Helper()
	script := filepath.Join(p.home, "stubborn.sh")
	if err := os.WriteFile(script, []byte(stubbornServer), 0o700); err != nil {
		p.t.Fatal(err)
	}
	return script
}

// shortDaemon starts a daemon that ends this long after its last bridge, and an agent of it.
func (p *place) shortDaemon(idle time.Duration) (*exec.Cmd, *agentProcess) {
	p.t.Helper()
	for range 10 { // on a busy machine the daemon may have ended before the agent comes, which then starts another one
		cmd := p.command("__daemon", "--idle", idle.String())
		if err := cmd.Start(); err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, if the test went well
		for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(p.runtimeDir(), "mcpvisor", "daemon.sock")); err == nil {
				break
			}
			if time.Now().After(deadline) {
				p.t.Fatal("the daemon does not begin")
			}
		}
		a := p.agent()
		if p.daemonPID() == cmd.Process.Pid {
			return cmd, a
		}
		a.ends()
		if out, err := p.command("down").CombinedOutput(); err != nil {
			p.t.Fatalf("down: %v: %s", err, out)
		}
		_ = cmd.Wait()
	}
	p.t.Fatal("no agent comes in time")
	return nil, nil
}

// TestTheDaemonEndsSomeTimeAfterItsLastAgent: it waits for servers that are slow to end, and leaves none of them behind.
func TestTheDaemonEndsSomeTimeAfterItsLastAgent(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.userServers(`{"mcpServers": {"good": {"command": "` + p.stubborn() + `", "stopGrace": "1s"}}}`)
	daemon, a := p.shortDaemon(time.Second)
	a.awaits("tools/call", `{"name":"good__echo","arguments":{"text":"hello"}}`, `"hello"`)
	a.ends()
	if err := daemon.Wait(); err != nil {
		t.Errorf("the daemon: %v", err)
	}
	if left := p.processes(); len(left) > 0 {
		t.Errorf("it has left %v behind", left)
	}
}

// TestACommandKeepsTheDaemon calls a tool over the control socket: the daemon has no bridge meanwhile, and does not end before the answer.
func TestACommandKeepsTheDaemon(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.userServers(goodServer)
	daemon, a := p.shortDaemon(time.Second)
	a.awaits("tools/call", `{"name":"good__echo","arguments":{"text":"hello"}}`, `"hello"`)
	out := make(chan string, 1)
	go func() {
		text, err := p.command("call", "good", "sleep", "for=7s").CombinedOutput()
		out <- fmt.Sprintf("%v: %s", err, text)
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) { // the call is under way
		text, _ := p.command("list", "--json").Output() // the text decides
		if strings.Contains(string(text), `"inFlight": 1`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no call is under way: %s", text)
		}
	}
	a.ends()
	if got := <-out; !strings.Contains(got, "slept 7s") || !strings.Contains(got, "using the daemon") {
		t.Errorf("a call without a bridge: %s", got)
	}
	if err := daemon.Wait(); err != nil {
		t.Errorf("the daemon: %v", err)
	}
}

// TestTheControlSocketOutlivesItsHost has two agents in one project with two values of a variable. When the first one is gone, and its servers
// have ended, the commands of the project find those of the second.
func TestTheControlSocketOutlivesItsHost(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	first := p.inProject("site", `{"mcpServers": {"valued": {"command": "fixture", "args": ["mcp-fixture", "good"], "env": {"GIVEN": "${VALUE:-none}"}}}}`)
	second := first.setEnv("VALUE=second")
	daemon, a := first.shortDaemon(time.Second)
	a.awaits("tools/call", `{"name":"valued__env","arguments":{"name":"GIVEN"}}`, "none")
	b := second.agent()
	b.awaits("tools/call", `{"name":"valued__env","arguments":{"name":"GIVEN"}}`, "second")
	if out, err := first.command("call", "valued", "env", "name=GIVEN").CombinedOutput(); err != nil || !strings.Contains(string(out), "none") {
		t.Errorf("with both: %v: %s", err, out)
	}
	a.ends()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Second) { // a call keeps the first one's servers for a second
		out, err := first.command("call", "valued", "env", "name=GIVEN").CombinedOutput()
		if err == nil && strings.Contains(string(out), "using the daemon") && strings.Contains(string(out), "second") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("without the first: %v: %s", err, out)
		}
	}
	b.ends()
	if err := daemon.Wait(); err != nil {
		t.Errorf("the daemon: %v", err)
	}
}

// TestSlowEndsDelayNoAgent has agents with other values of a variable, one after the other: the servers of the one before are slow to end, and
// the next one gets its own before that.
func TestSlowEndsDelayNoAgent(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	site := p.inProject("site", `{"mcpServers": {"valued": {"command": "`+p.stubborn()+`", "stopGrace": "4s", "env": {"GIVEN": "${VALUE:-none}"}}}}`)
	before := 0
	for i := range 3 { // a busy machine may need longer than the servers
		a := site.setEnv(fmt.Sprint("VALUE=", i)).agent()
		a.awaits("tools/call", `{"name":"valued__env","arguments":{"name":"GIVEN"}}`, fmt.Sprint(i))
		delayed := before != 0 && syscall.Kill(before, 0) != nil
		before = site.serverPIDs()["valued"]
		a.ends()
		if i > 0 && !delayed {
			break
		}
		if i == 2 {
			t.Error("each agent has waited for the end of the servers before")
		}
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}

// TestTheDaemonWaitsForServersThatItHasLeft has an agent give another value of a variable, so that the daemon ends the server that runs
// with the earlier value. The daemon is told to end meanwhile: it must wait as long as the entry of that server allows.
func TestTheDaemonWaitsForServersThatItHasLeft(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	script, saved := filepath.Join(p.home, "saves.sh"), filepath.Join(p.home, "saved")
	text := "#!/bin/sh\n" + `[ "$GIVEN" = saves ] || exec fixture mcp-fixture good` + "\ntrap '' TERM\nfixture mcp-fixture good\nsleep 5\necho >" + saved + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	site := p.inProject("site", `{"mcpServers": {"valued": {"command": "`+script+`", "stopGrace": "9s", "env": {"GIVEN": "${VALUE:-none}"}}}}`)
	for i := range 3 { // on a busy machine the server may have ended before the daemon is told to, or be out of time
		a := site.setEnv("VALUE=saves").agent()
		a.awaits("tools/call", `{"name":"valued__env","arguments":{"name":"GIVEN"}}`, "saves")
		a.ends()
		b := site.setEnv("VALUE=other").agent()
		b.awaits("tools/call", `{"name":"valued__env","arguments":{"name":"GIVEN"}}`, "other")
		b.ends()
		_, before := os.Stat(saved)
		if out, err := p.command("down").CombinedOutput(); err != nil {
			t.Errorf("down: %v: %s", err, out)
		}
		if left := p.processes(); len(left) > 0 {
			t.Fatalf("it has left %v behind", left)
		}
		if _, err := os.Stat(saved); err == nil && before != nil {
			return
		}
		_ = os.Remove(saved) // it may not be there
		t.Logf("round %d: the server had ended before: %t", i, before == nil)
	}
	t.Error("the daemon has not let the server end by itself")
}
