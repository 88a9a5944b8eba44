package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agentProcess is a mcpvisor connect with a test in the place of the agent.
type agentProcess struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan map[string]any
	stderr bytes.Buffer
	next   int
	// opening is the answer to its handshake.
	opening string
}

// agent starts a mcpvisor connect and shakes hands with it.
func (p *place) agent(args ...string) *agentProcess {
	p.t.Helper()
	return p.agentOf(append([]string{"connect"}, args...)...)
}

// agentOf starts an agent that starts this program with other words.
func (p *place) agentOf(words ...string) *agentProcess {
	p.t.Helper()
	return p.agentWith("{}", words...)
}

// agentWith starts an agent with these capabilities.
func (p *place) agentWith(capabilities string, words ...string) *agentProcess {
	p.t.Helper()
	a := &agentProcess{t: p.t, cmd: p.command(words...), lines: make(chan map[string]any, 1000)}
	in, err := a.cmd.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	a.in, a.cmd.Stderr = in, &a.stderr
	if err := a.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = a.cmd.Process.Kill() // it has ended, if the test went well
		_ = a.cmd.Wait()
		if p.t.Failed() {
			log, _ := os.ReadFile(filepath.Join(p.home, "state", "mcpvisor", "daemon.log"))
			p.t.Logf("standard error:\n%s\nlog of the daemon:\n%s", a.stderr.String(), log)
		}
	})
	go func() { // it ends with the process
		defer close(a.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			var m map[string]any
			if err := json.Unmarshal(line, &m); err != nil {
				m = map[string]any{"broken": string(line)}
			}
			a.lines <- m
		}
	}()
	a.opening = a.ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":`+capabilities+`,"clientInfo":{"name":"test","version":"1"}}`)
	a.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return a
}

// send writes a line.
func (a *agentProcess) send(line string) {
	a.t.Helper()
	if _, err := io.WriteString(a.in, line+"\n"); err != nil {
		a.t.Fatal(err)
	}
}

// begin sends a request and returns its id.
func (a *agentProcess) begin(method, params string) int {
	a.t.Helper()
	a.next++
	a.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, a.next, method, params))
	return a.next
}

// answer waits for the answer to a request and returns its result, or its error as text.
func (a *agentProcess) answer(id int) string {
	a.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case m, ok := <-a.lines:
			if !ok {
				a.t.Fatal("the bridge has ended")
			}
			if n, numbered := m["id"].(float64); numbered && int(n) == id && m["method"] == nil {
				text, _ := json.Marshal(m["result"])
				if m["error"] != nil {
					text, _ = json.Marshal(m["error"])
				}
				return string(text)
			}
		case <-timeout:
			a.t.Fatalf("request %d has no answer", id)
		}
	}
}

// ask sends a request and returns its answer.
func (a *agentProcess) ask(method, params string) string {
	a.t.Helper()
	return a.answer(a.begin(method, params))
}

// awaits repeats a request until the answer has a text: servers come after the daemon.
func (a *agentProcess) awaits(method, params, text string) {
	a.t.Helper()
	got := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = a.ask(method, params); strings.Contains(got, text) {
			return
		}
	}
	a.t.Fatalf("%s never has %q, but %s", method, text, got)
}

// ends closes the agent's side and waits for the bridge.
func (a *agentProcess) ends() {
	a.t.Helper()
	_ = a.in.Close()
	done := make(chan error, 1)
	go func() { done <- a.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			a.t.Errorf("the bridge: %v", err)
		}
	case <-time.After(patience):
		a.t.Error("the bridge does not end")
	}
}

// daemonPID returns the process of the daemon, by its lock.
func (p *place) daemonPID() int {
	p.t.Helper()
	for _, v := range p.env {
		if dir, ok := strings.CutPrefix(v, "XDG_RUNTIME_DIR="); ok {
			text, _ := os.ReadFile(filepath.Join(dir, "mcpvisor", "daemon.lock"))
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
				return pid
			}
		}
	}
	p.t.Fatal("there is no daemon")
	return 0
}

// userServers writes the person's own configuration.
func (p *place) userServers(text string) {
	p.t.Helper()
	file := filepath.Join(p.home, "config", "mcpvisor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// goodServer is a configuration with one good server.
const goodServer = `{"mcpServers": {"good": {"command": "fixture", "args": ["mcp-fixture", "good"]}}}`

// TestAgentsGoOnWithoutTheirDaemon kills the daemon under two agents: a call in its middle is unknown, everything after it works, both
// share one server process, and down leaves nothing.
func TestAgentsGoOnWithoutTheirDaemon(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.userServers(goodServer)
	one, two := p.agent(), p.agent()
	const echo = `{"name":"good__echo","arguments":{"text":"hello"}}`
	for _, a := range []*agentProcess{one, two} {
		a.awaits("tools/list", `{}`, `"good__echo"`)
		if got := a.ask("tools/call", echo); !strings.Contains(got, `"hello"`) {
			t.Fatal(got)
		}
	}
	for _, a := range []*agentProcess{one, two} {
		if kb := privateMemory(t, a.cmd.Process.Pid); kb > 12<<10 {
			t.Errorf("a bridge has %d KB of its own", kb)
		}
	}
	servers := 0
	for _, line := range marked([]byte("HOME=" + p.home + "\x00")) {
		if strings.Contains(line, "mcp-fixture") {
			servers++
		}
	}
	if servers != 1 {
		t.Errorf("%d server processes for two agents", servers)
	}

	first := p.daemonPID()
	id := one.begin("tools/call", `{"name":"good__sleep","arguments":{"for":"1m"}}`)
	one.ask("ping", `{}`)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := one.answer(id); !strings.Contains(got, `"mcpvisor/outcome":"unknown"`) || !strings.Contains(got, `"isError":true`) {
		t.Errorf("a call in its middle: %s", got)
	}
	for _, a := range []*agentProcess{one, two} {
		a.awaits("tools/call", echo, `"hello"`)
	}
	if second := p.daemonPID(); second == first {
		t.Error("it is the daemon that was killed")
	}

	// A daemon that is asked to end answers what it has, and agents get the next one without an unknown call.
	id = one.begin("tools/call", `{"name":"good__sleep","arguments":{"for":"1s"}}`)
	one.ask("ping", `{}`)
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
	if got := one.answer(id); !strings.Contains(got, "slept 1s") {
		t.Errorf("a call at the end of the daemon: %s", got)
	}
	// Both agents are idle now: a daemon was once started by the first of them at once.
	if out, err := p.command("down").CombinedOutput(); err != nil || !strings.Contains(string(out), "No daemon runs.") {
		t.Errorf("down while agents are idle: %v: %s", err, out)
	}
	two.awaits("tools/call", echo, `"hello"`)
	one.ends()
	two.ends()
	if out, err := p.command("down").CombinedOutput(); err != nil || !strings.Contains(string(out), "The daemon has ended.") {
		t.Errorf("down: %v: %s", err, out)
	}
	if out, err := p.command("down").CombinedOutput(); err != nil || !strings.Contains(string(out), "No daemon runs.") {
		t.Errorf("down once more: %v: %s", err, out)
	}
}

// TestAProjectsServerWaitsForItsApproval runs "mcpvisor connect" in a project with a server that is not approved. The command names the
// server and how to approve it, and the daemon does not start it. Once it is approved, the agent can call it. The server's process gets
// the one variable of the agent that its entry mentions, and no other.
func TestAProjectsServerWaitsForItsApproval(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.env = append(p.env, "MENTIONED=canary-one", "UNMENTIONED=canary-two")
	if err := os.WriteFile(filepath.Join(p.dir, ".mcp.json"), []byte(`{"mcpServers": {"mine": {"command": "fixture",
		"args": ["mcp-fixture", "good"], "env": {"GIVEN": "${MENTIONED}"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a := p.agent()
	if got := a.ask("tools/list", `{}`); strings.Contains(got, "mine__") {
		t.Errorf("it runs without an approval: %s", got)
	}
	// The commands of the project talk to the daemon.
	if out, err := p.command("list").CombinedOutput(); !strings.Contains(string(out), fmt.Sprintf("(pid %d)", p.daemonPID())) {
		t.Errorf("list: %v: %s", err, out)
	}
	if out, err := p.command("approve", "mine", "--yes").CombinedOutput(); err != nil {
		t.Fatalf("approve: %v: %s", err, out)
	}
	a.ends()
	if !strings.Contains(a.stderr.String(), `the server "mine" waits for your approval and is not started: mcpvisor --dir`) {
		t.Errorf("standard error: %s", a.stderr.String())
	}
	tools := t.TempDir()
	for i, v := range p.env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			p.env[i] = "PATH=" + path + ":" + tools
		}
	}
	b := p.agent()
	b.awaits("tools/call", `{"name":"mine__env","arguments":{"name":"PATH"}}`, tools)
	b.awaits("tools/call", `{"name":"mine__env","arguments":{"name":"GIVEN"}}`, "canary-one")
	if got := b.ask("tools/call", `{"name":"mine__env","arguments":{"name":"UNMENTIONED"}}`); strings.Contains(got, "canary-two") {
		t.Errorf("a variable that nobody mentions: %s", got)
	}
	b.ends()
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}

// An agent that comes while the daemon has the servers of its project reads what the files and the approvals say by then.
func TestAnAgentReadsWhichServersWaitByNow(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	file := filepath.Join(p.dir, ".mcp.json")
	if err := os.WriteFile(file, []byte(goodServer), 0o600); err != nil {
		t.Fatal(err)
	}
	said := func(then func(*agentProcess)) string {
		a := p.agent()
		then(a)
		a.ends()
		return a.stderr.String()
	}
	listed := func(a *agentProcess) { a.awaits("tools/list", `{}`, `"good__echo"`) }
	if got := said(func(a *agentProcess) { a.ask("tools/list", `{}`) }); !strings.Contains(got, `"good" waits for your approval`) {
		t.Errorf("before the approval: %s", got)
	}
	if out, err := p.command("approve", "good", "--yes").CombinedOutput(); err != nil {
		t.Fatalf("approve: %v: %s", err, out)
	}
	if got := said(listed); got != "" {
		t.Errorf("after the approval: %s", got)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(goodServer, `{"good"`, `{"late": {"command": "late"}, "good"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := said(listed); !strings.Contains(got, `"late" waits for your approval`) || strings.Contains(got, `"good"`) {
		t.Errorf("after another server was added: %s", got)
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}

// Every command that looks for the servers of a project names the project's file that cannot be read, also when the daemon serves the
// directory already.
func TestAnUnreadableProjectFileIsTold(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.userServers(goodServer) // without another file that can be read, the daemon would refuse the directory
	for range 2 {
		if err := os.WriteFile(filepath.Join(p.dir, ".mcp.json"), []byte(`{"mcpServers": broken}`), 0o600); err != nil {
			t.Fatal(err)
		}
		a := p.agent()
		a.awaits("tools/list", `{}`, `"good__echo"`)
		a.ends()
		if said := a.stderr.String(); !strings.Contains(said, ".mcp.json:1:16: ") {
			t.Errorf("standard error: %s", said)
		}
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}

// privateMemory returns the memory that a process has for itself, in KB; 0 if the system does not show it to this user.
func privateMemory(t *testing.T, pid int) (kb int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var n int
		if name, rest, _ := strings.Cut(line, ":"); name == "Private_Clean" || name == "Private_Dirty" {
			if _, err := fmt.Sscan(rest, &n); err != nil {
				t.Fatal(err)
			}
			kb += n
		}
	}
	return kb
}

// TestANewerProgramTakesTheDaemonsPlace connects an agent by a program whose file is newer: the daemon answers what it has and gives
// way, and the agent of before goes on with the new one. The older program uses the newer daemon.
func TestANewerProgramTakesTheDaemonsPlace(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.userServers(goodServer)
	older := p.agent()
	older.awaits("tools/list", `{}`, `"good__echo"`)
	first := p.daemonPID()

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcpvisor")
	if err := os.WriteFile(file, program, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	id := older.begin("tools/call", `{"name":"good__sleep","arguments":{"for":"1s"}}`)
	older.ask("ping", `{}`)
	p.program = file
	newer := p.agent()
	p.program = ""
	if got := older.answer(id); !strings.Contains(got, "slept 1s") {
		t.Errorf("a call at the end of the older daemon: %s", got)
	}
	newer.awaits("tools/list", `{}`, `"good__echo"`)
	second := p.daemonPID()
	if second == first {
		t.Error("it is the older daemon")
	}
	older.awaits("tools/call", `{"name":"good__echo","arguments":{"text":"hello"}}`, `"hello"`)
	third := p.agent()
	third.awaits("tools/call", `{"name":"good__echo","arguments":{"text":"hello"}}`, `"hello"`)
	if p.daemonPID() != second {
		t.Error("the older program has replaced the newer daemon")
	}
	for _, a := range []*agentProcess{older, newer, third} {
		a.ends()
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}

// TestUpWithoutATerminal hands the servers of a project to the daemon: its commands find them, a second up and a removed runtime
// directory do no harm, and down ends it.
func TestUpWithoutATerminal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	if out, err := p.command("up", "--detach").CombinedOutput(); exitCode(err) != 2 || !strings.Contains(string(out), "no MCP server is configured") {
		t.Errorf("without servers: %v: %s", err, out)
	}
	p.userServers(`{"mcpServers": {`)
	project := filepath.Join(p.dir, ".mcp.json")
	if err := os.WriteFile(project, []byte(goodServer), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := p.command("up", "--detach").CombinedOutput()
	if exitCode(err) != 2 || strings.Count(string(out), "the file ends in the middle") != 1 || !strings.Contains(string(out), "mend the file first") {
		t.Errorf("with a broken file: %v: %s", err, out)
	}
	if err := os.Remove(project); err != nil {
		t.Fatal(err)
	}
	p.userServers(goodServer)
	if out, err := p.command("up", "--detach", "--json").CombinedOutput(); exitCode(err) != 2 || !strings.Contains(string(out), "--json does not reach it") {
		t.Errorf("with a flag: %v: %s", err, out)
	}
	for range 2 {
		if out, err := p.command("up", "--detach").CombinedOutput(); err != nil || !strings.Contains(string(out), "The daemon keeps the servers of ") {
			t.Fatalf("%v: %s", err, out)
		}
	}
	pid := p.daemonPID()
	if out, err := p.command("call", "good", "echo", "text=hello").CombinedOutput(); err != nil ||
		!strings.Contains(string(out), fmt.Sprintf("(pid %d)", pid)) || !strings.Contains(string(out), "hello") {
		t.Errorf("call: %v: %s", err, out)
	}
	view := p.start("up")
	view.says("good: connected: 13 tools")
	view.signal(syscall.SIGINT)
	if code := view.ends(); code != 0 || !strings.Contains(strings.Join(view.said, "\n"), "the daemon keeps 1 server; mcpvisor down ends the daemon") {
		t.Errorf("up: %d: %q", code, view.said)
	}
	if out, err := p.command("up", "--json", "--duration", "1s").Output(); err != nil || !strings.Contains(string(out), `"kind":"phase"`) {
		t.Errorf("up --json: %v: %s", err, out)
	}
	if out, err := p.command("up", "--mcp-server", "x=fixture mcp-fixture good").CombinedOutput(); exitCode(err) != 2 ||
		!strings.Contains(string(out), "the daemon of mcpvisor (process ") {
		t.Errorf("up with another server: %v: %s", err, out)
	}
	a := p.agent()
	a.awaits("tools/call", `{"name":"good__echo","arguments":{"text":"hello"}}`, `"hello"`)
	a.ends()
	for _, v := range p.env {
		if dir, ok := strings.CutPrefix(v, "XDG_RUNTIME_DIR="); ok {
			if err := os.Remove(filepath.Join(dir, "mcpvisor", "daemon.sock")); err != nil {
				t.Fatal(err)
			}
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		out, err := p.command("down").CombinedOutput()
		if err == nil && strings.Contains(string(out), "The daemon has ended.") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("down: %v: %s", err, out)
		}
	}
}
