package main

import (
	"strings"
	"testing"
)

// TestConnectShowsAView has an agent with a view: it sees and calls what the view shows, also when the file has changed; an agent without sees
// everything. A view that is not there refuses what the agent asks, with the name that was meant, and shows nothing.
func TestConnectShowsAView(t *testing.T) {
	t.Parallel()
	p := newPlace(t, "")
	file := func(servers string) string {
		return `{"mcpServers": {"one": {"command": "fixture", "args": ["mcp-fixture", "good"]}, "two": {"command": "fixture", "args": ["mcp-fixture", "good"]}},
			"gateway": {"views": {"docs": {"servers": ["` + servers + `"]}}}}`
	}
	p.userServers(file("one"))
	a, b := p.agent("--view", "docs"), p.agent()
	a.awaits("tools/list", `{}`, `"one__echo"`)
	b.awaits("tools/list", `{}`, `"two__echo"`)
	if got := a.ask("tools/list", `{}`); strings.Contains(got, "two__") {
		t.Errorf("the view shows %s", got)
	}
	if got := a.ask("tools/call", `{"name":"two__echo","arguments":{"text":"hello"}}`); strings.Contains(got, `"hello"`) {
		t.Errorf("beside the view it calls %s", got)
	}
	p.userServers(file("two"))
	a.awaits("tools/list", `{}`, `"two__echo"`)
	if got := a.ask("tools/list", `{}`); strings.Contains(got, "one__") {
		t.Errorf("after the change the view shows %s", got)
	}
	c := p.agentWith("{}", "connect", "--view", "dosc")
	if got := c.ask("tools/list", `{}`); !strings.Contains(got, `there is no view \"dosc\" in the configuration; did you mean \"docs\"?`) {
		t.Errorf("a view that is not there: %s", got)
	}
	for _, agent := range []*agentProcess{a, b, c} {
		agent.ends()
	}
	if out, err := p.command("down").CombinedOutput(); err != nil {
		t.Errorf("down: %v: %s", err, out)
	}
}
