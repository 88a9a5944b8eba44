package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inProject returns the same place with another working directory, whose configuration of servers is approved.
func (p *place) inProject(name, servers string) *place {
	p.t.Helper()
	other := *p
	other.dir = filepath.Join(p.t.TempDir(), name)
	if err := os.MkdirAll(other.dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	if servers != "" {
		if err := os.WriteFile(filepath.Join(other.dir, ".mcp.json"), []byte(servers), 0o600); err != nil {
			p.t.Fatal(err)
		}
		if out, err := other.command("approve", "--all", "--yes").CombinedOutput(); err != nil {
			p.t.Fatalf("approve: %v: %s", err, out)
		}
	}
	return &other
}

// setEnv returns the same place with a variable.
func (p *place) setEnv(v string) *place {
	other := *p
	other.env = append(slices.Clone(p.env), v)
	return &other
}

// serverPIDs returns the processes of the servers that a project has, by name.
func (p *place) serverPIDs() map[string]int {
	p.t.Helper()
	out, err := p.command("list", "--json").Output()
	var all []struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	}
	if bad := json.Unmarshal(out, &all); bad != nil {
		p.t.Fatalf("list: %v, %v: %s", err, bad, out)
	}
	pids := map[string]int{}
	for _, s := range all {
		pids[s.Name] = s.PID
	}
	return pids
}

// TestProjectsShareTheUsersServers connects agents in three projects. The user's server runs once for all of them; the one with the same
// name in one project is that project's; the one that another project forbids cannot be called there, and nowhere else is that noticed; the
// one that mentions a variable runs once for each of its values, and the others of that agent are shared all the same.
func TestProjectsShareTheUsersServers(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.userServers(`{"mcpServers": {
		"plain": {"command": "fixture", "args": ["mcp-fixture", "good"]},
		"twice": {"command": "fixture", "args": ["mcp-fixture", "good"]},
		"bound": {"command": "fixture", "args": ["mcp-fixture", "good"], "env": {"WHERE": "${workspaceFolder}"}},
		"valued": {"command": "fixture", "args": ["mcp-fixture", "good"], "env": {"GIVEN": "${VALUE:-none}"}}}}`)
	one := p.inProject("one", `{"mcpServers": {"twice": {"command": "fixture", "args": ["mcp-fixture", "good"], "env": {"GIVEN": "own"}}}}`)
	two := p.inProject("two", `{"mcpServers": {"more": {"command": "fixture", "args": ["mcp-fixture", "good"]}},
		"permissions": {"deny": ["plain:echo"]}}`)
	three := p.inProject("three", "").setEnv("VALUE=other")
	agents := map[string]*agentProcess{}
	for name, at := range map[string]*place{"one": one, "two": two} {
		agents[name] = at.agent()
	}
	for name := range agents {
		agents[name].awaits("tools/list", `{}`, `"valued__env"`)
	}
	agents["three"] = three.agent()
	for name, a := range agents {
		for _, server := range []string{"plain", "twice", "bound", "valued"} {
			a.awaits("tools/list", `{}`, fmt.Sprintf("%q", server+"__env"))
		}
		a.awaits("tools/call", `{"name":"bound__env","arguments":{"name":"WHERE"}}`, "/"+name)
	}
	first, second, third := one.serverPIDs(), two.serverPIDs(), three.serverPIDs()
	if first["plain"] == 0 || first["plain"] != second["plain"] || second["plain"] != third["plain"] {
		t.Errorf("a server that all share: processes %v, %v, %v", first, second, third)
	}
	if first["twice"] == second["twice"] || second["twice"] != third["twice"] {
		t.Errorf("a server that one project has itself: processes %v, %v, %v", first, second, third)
	}
	if first["valued"] != second["valued"] || second["valued"] == third["valued"] {
		t.Errorf("a server with two values: processes %v, %v, %v", first, second, third)
	}
	if first["bound"] == second["bound"] || second["bound"] == third["bound"] {
		t.Errorf("a server that names the project: processes %v, %v, %v", first, second, third)
	}
	agents["one"].awaits("tools/call", `{"name":"twice__env","arguments":{"name":"GIVEN"}}`, "own")
	agents["three"].awaits("tools/call", `{"name":"valued__env","arguments":{"name":"GIVEN"}}`, "other")
	agents["one"].awaits("tools/call", `{"name":"valued__env","arguments":{"name":"GIVEN"}}`, "none")
	if got := agents["two"].ask("tools/list", `{}`); strings.Contains(got, `"plain__echo"`) || !strings.Contains(got, `"more__echo"`) {
		t.Errorf("a tool that the project denies is offered there, or its own is not: %s", got)
	}
	if got := agents["two"].ask("tools/call", `{"name":"plain__echo","arguments":{"text":"hello"}}`); !strings.Contains(got, "denied") {
		t.Errorf("a tool that the project denies: %s", got)
	}
	agents["one"].awaits("tools/call", `{"name":"plain__echo","arguments":{"text":"hello"}}`, `"hello"`)

	// A changed entry of the user's file counts for everybody, and a new one of a project hides it there alone.
	p.userServers(`{"mcpServers": {"plain": {"command": "fixture", "args": ["mcp-fixture", "good"], "env": {"GIVEN": "later"}}}}`)
	for name, a := range agents {
		a.awaits("tools/call", `{"name":"plain__env","arguments":{"name":"GIVEN"}}`, "later")
		if name != "one" {
			a.awaits("tools/call", `{"name":"twice__echo","arguments":{"text":"x"}}`, "twice")
		}
	}
	if first, second = one.serverPIDs(), two.serverPIDs(); first["plain"] == 0 || first["plain"] != second["plain"] || second["twice"] != 0 {
		t.Errorf("after a change: processes %v and %v", first, second)
	}
	for _, a := range agents {
		a.ends()
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}

// TestAListIsRememberedWhileServersStart ends the daemon and starts it again with a server that takes its time: an agent gets the tools that
// the server had before, at once and without a notice afterwards, and a call waits for it. A server that cannot start any more loses them.
func TestAListIsRememberedWhileServersStart(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	hold := filepath.Join(p.home, "hold")
	script := filepath.Join(p.home, "server.sh")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	// The server waits as long as the file is there.
	write(script, "#!/bin/sh\nwhile [ -e "+hold+" ]; do sleep 0.05; done\n[ -e "+hold+".no ] && exit 1\nexec fixture mcp-fixture good\n")
	p.userServers(`{"mcpServers": {"later": {"command": "` + script + `"}}}`)
	a := p.agent()
	a.awaits("tools/list", `{}`, `"later__echo"`)
	want := a.ask("tools/list", `{}`)
	a.ends()
	down := func() {
		if out, err := p.command("down").CombinedOutput(); err != nil {
			t.Fatalf("down: %v: %s", err, out)
		}
	}
	down()
	write(hold, "")
	b := p.agent()
	if got := b.ask("tools/list", `{}`); got != want {
		t.Errorf("while it starts the list is\n%s\nand was\n%s", got, want)
	}
	id := b.begin("tools/call", `{"name":"later__echo","arguments":{"text":"hello"}}`)
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	if got := b.answer(id); !strings.Contains(got, `"hello"`) {
		t.Errorf("a call while it starts: %s", got)
	}
	if got := b.ask("tools/list", `{}`); got != want {
		t.Errorf("after its start the list is\n%s\nand was\n%s", got, want)
	}
	b.ends()
	down()
	write(hold+".no", "")
	write(hold, "")
	c := p.agent()
	c.awaits("tools/list", `{}`, `"later__echo"`)
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	c.awaits("tools/list", `{}`, `"tools":[]`)
	c.ends()
	down()
}

// TestServeStdioRemembersAList starts serve --stdio a second time with a server that takes its time: an agent that lists once gets the tools
// that the server had before.
func TestServeStdioRemembersAList(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	hold := filepath.Join(p.home, "hold")
	script := filepath.Join(p.home, "server.sh")
	text := "#!/bin/sh\nwhile [ -e " + hold + " ]; do sleep 0.05; done\nexec fixture mcp-fixture good\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	p.userServers(`{"mcpServers": {"later": {"command": "` + script + `"}}}`)
	a := p.agentOf("serve", "--stdio")
	a.awaits("tools/list", `{}`, `"later__echo"`)
	want := a.ask("tools/list", `{}`)
	a.ends()
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b := p.agentOf("serve", "--stdio")
	if got := b.ask("tools/list", `{}`); got != want {
		t.Errorf("while it starts the list is\n%s\nand was\n%s", got, want)
	}
	id := b.begin("tools/call", `{"name":"later__echo","arguments":{"text":"hello"}}`)
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	if got := b.answer(id); !strings.Contains(got, `"hello"`) {
		t.Errorf("a call while it starts: %s", got)
	}
	b.ends()
}

// TestFiftyAgentsShareOneProcess connects fifty agents from five directories: the user's server runs once, each agent can call it, and no
// bridge has more than 12 MB of its own.
func TestFiftyAgentsShareOneProcess(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	p.userServers(goodServer)
	var places []*place
	for i := range 5 {
		places = append(places, p.inProject(fmt.Sprint(i), ""))
	}
	var agents []*agentProcess
	for i := range 50 {
		agents = append(agents, places[i%len(places)].agent())
	}
	for _, a := range agents {
		a.awaits("tools/call", `{"name":"good__echo","arguments":{"text":"hello"}}`, `"hello"`)
	}
	for _, a := range agents {
		if kb := privateMemory(t, a.cmd.Process.Pid); kb > 12<<10 {
			t.Errorf("a bridge has %d KB of its own", kb)
		}
	}
	pids := map[int]bool{}
	for _, at := range places {
		pids[at.serverPIDs()["good"]] = true
	}
	if len(pids) != 1 || pids[0] {
		t.Errorf("processes %v", pids)
	}
	for _, a := range agents {
		_ = a.in.Close()
	}
	for _, a := range agents {
		a.ends()
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}
