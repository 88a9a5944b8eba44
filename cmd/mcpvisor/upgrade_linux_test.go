package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers/built"
)

// laterProgram builds this command as a later version is, whose bridge and daemon greet each other with the protocol's next number.
func laterProgram(t *testing.T) string {
	t.Helper()
	program := built.Changed(t, "cmd/mcpvisor", built.Change{File: "supervisor/version.go", Before: `const release = "`, After: `const release = "9.9.9-`},
		built.Change{File: "cmd/mcpvisor/internal/daemon/client/hello.go", Before: "\nconst Protocol = 1\n", After: "\nconst Protocol = 2\n"})
	if err := os.Chtimes(program, time.Time{}, time.Now().Add(-time.Hour)); err != nil { // its version decides
		t.Fatal(err)
	}
	return program
}

// TestAnUpgradeUnderManyAgents has agents of this program in the middle of their calls when one of a later program comes, whose protocol has
// another number. They go on with the daemon of the later one. No call has another end than its result, none runs twice, and no daemon of
// this program comes in between: many bridges that look for a daemon would start one after the other, and each would give way.
func TestAnUpgradeUnderManyAgents(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	script, starts, ran := filepath.Join(p.home, "counted.sh"), filepath.Join(p.home, "starts"), filepath.Join(p.home, "ran")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho >>"+starts+"\nexec fixture mcp-fixture good\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.userServers(`{"mcpServers": {"good": {"command": "` + script + `"}}}`)
	later := laterProgram(t)
	var all []*agentProcess
	for range 16 {
		a := p.agent()
		a.awaits("tools/list", `{}`, `"good__append"`)
		all = append(all, a)
	}
	first := p.daemonPID()
	slow := map[*agentProcess]int{}
	for i, a := range all {
		if got := a.ask("tools/call", fmt.Sprintf(`{"name":"good__append","arguments":{"file":%q,"line":"before-%d"}}`, ran, i)); !strings.Contains(got, "appended") {
			t.Errorf("a call of before: %s", got)
		}
		if i < 2 { // the others look for the next daemon at once
			slow[a] = a.begin("tools/call", `{"name":"good__sleep","arguments":{"for":"1s"}}`)
		}
	}
	p.program = later
	newer := p.agent()
	p.program = ""
	newer.awaits("tools/list", `{}`, `"good__append"`)
	second := p.daemonPID()
	if program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", second)); second == first || program != later {
		t.Errorf("the daemon is process %d of %s, after %d", second, program, first)
	}
	for i, a := range all {
		if i < 2 {
			if got := a.answer(slow[a]); !strings.Contains(got, "slept 1s") {
				t.Errorf("a call in the middle: %s", got)
			}
		}
		if got := a.ask("tools/call", fmt.Sprintf(`{"name":"good__append","arguments":{"file":%q,"line":"after-%d"}}`, ran, i)); !strings.Contains(got, "appended") {
			t.Errorf("a call of after: %s", got)
		}
	}
	if now := p.daemonPID(); now != second {
		t.Errorf("the daemon is now process %d, not %d", now, second)
	}
	text, err := os.ReadFile(ran)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for line := range strings.Lines(string(text)) {
		times[line]++
	}
	for line, n := range times {
		if n > 1 {
			t.Errorf("%q ran %d times", line, n)
		}
	}
	if len(times) != 2*len(all) {
		t.Errorf("%d calls of %d have run", len(times), 2*len(all))
	}
	if text, err := os.ReadFile(starts); err != nil || len(text) != 2 {
		t.Errorf("the server was started %d times, not once by each of two daemons: %v", len(text), err)
	}
	for _, a := range append(all, newer) {
		a.ends()
		if a.stderr.Len() > 0 {
			t.Errorf("standard error: %s", a.stderr.String())
		}
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}
