package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runtimeDir returns the runtime directory of the place.
func (p *place) runtimeDir() string {
	for _, v := range p.env {
		if dir, ok := strings.CutPrefix(v, "XDG_RUNTIME_DIR="); ok {
			return dir
		}
	}
	return ""
}

// initializeTime greets the daemon as a bridge does whose agent has waited for some milliseconds, and returns how long the answer to
// initialize takes after the beginning of the greeting, and after its end.
func (p *place) initializeTime(waited int) (whole, rest time.Duration) {
	p.t.Helper()
	conn, err := net.Dial("unix", filepath.Join(p.runtimeDir(), "mcpvisor", "daemon.sock"))
	if err != nil {
		p.t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	r := bufio.NewReader(conn)
	exchange := func(line string) map[string]any {
		if _, err := fmt.Fprintln(conn, line); err != nil {
			p.t.Fatal(err)
		}
		text, err := r.ReadBytes('\n')
		if err != nil {
			p.t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil || m["error"] != nil {
			p.t.Fatalf("%v: %s", err, text)
		}
		return m
	}
	greeted := time.Now()
	exchange(fmt.Sprintf(`{"protocol":1,"version":"test","dir":%q,"waited":%d}`, p.dir, waited))
	exchange(`{"env":{}}`)
	begin := time.Now()
	exchange(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	return time.Since(greeted), time.Since(begin)
}

// TestTheStartOfTheDaemonCounts has servers that never answer. An agent that comes with one and has waited for its daemon already waits only a rest
// of time for it, one that has not waits 300 ms, and one that comes later does not wait.
func TestTheStartOfTheDaemonCounts(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	script := filepath.Join(p.home, "silent.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	silent := `{"mcpServers": {"silent": {"command": "` + script + `", "connectTimeout": "10m"}}}`
	first, waiting := p.inProject("first", silent), []*place{}
	for i := range 5 {
		waiting = append(waiting, p.inProject(fmt.Sprint("waiting", i), silent))
	}
	a := p.agent()
	if took, _ := first.initializeTime(0); took < 300*time.Millisecond {
		t.Errorf("an agent that has not waited got its answer after %s", took)
	}
	// A busy machine delays some.
	shortest := func(at func(i int) *place, waited int) (least time.Duration) {
		least = patience
		for i := 0; i < len(waiting) && least >= 250*time.Millisecond; i++ {
			_, rest := at(i).initializeTime(waited)
			least = min(least, rest)
		}
		return least
	}
	if least := shortest(func(i int) *place { return waiting[i] }, 10_000); least >= 250*time.Millisecond {
		t.Errorf("an agent that had waited for 10 s waited for %s more", least)
	}
	b := first.agent()
	if least := shortest(func(int) *place { return first }, 0); least >= 250*time.Millisecond {
		t.Errorf("an agent that came long after a silent server waited for it for %s", least)
	}
	b.ends()
	a.ends()
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}

// An agent that starts the daemon with its first breath comes before the servers. It gets their tools as they were, and also their instructions,
// which are told in the handshake alone: once it never had them.
func TestTheFirstAgentGetsTheInstructions(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	script, slow, ready := filepath.Join(p.home, "server.sh"), filepath.Join(p.home, "slow"), filepath.Join(p.home, "ready")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nwhile [ -e "+slow+" ] && [ ! -e "+ready+" ]; do sleep 0.02; done\nexec fixture mcp-fixture good\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.userServers(`{"mcpServers": {"page": {"command": "` + script + `"}}}`)
	a := p.agent()
	a.awaits("tools/list", `{}`, `"page__echo"`)
	a.ends()
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Fatalf("down: %v: %s", err, out)
	}
	if err := os.WriteFile(slow, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := p.agent()
	if got := b.ask("tools/list", `{}`); !strings.Contains(got, "page__echo") {
		t.Errorf("the tools are %s", got)
	}
	if want := "# page\\nA fixture of mcpvisor's tests."; !strings.Contains(b.opening, want) {
		t.Errorf("the handshake is %s", b.opening)
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.awaits("tools/call", `{"name":"page__echo","arguments":{"text":"hello"}}`, `"hello"`)
	b.ends()
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}
