package up

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestTheTableTellsOfReloads checks that faults of the files, and keys that need a restart, stay in the foot until a reload
// without them, and that the text for a project without servers goes with the first server.
func TestTheTableTellsOfReloads(t *testing.T) {
	r := &upRun{options: &cli.Options{Streams: terminal.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}, project: "/p", emptyText: "It waits for servers"}
	l := newLiveTable(r, &displayWriter{w: &bytes.Buffer{}, onClosed: func() {}}, newBoard())
	l.began = time.Now()
	shown := func() string { return strings.Join(l.newFrame(time.Now(), 110, 30).renderLines(), "\n") }
	has := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if text := shown(); !strings.Contains(text, w) {
				t.Errorf("no %q in\n%s", w, text)
			}
		}
	}
	has("mcpvisor", "/p", "It waits for servers")
	bad := supervisor.Problem{File: "/p/mcp.json", Line: 3, Col: 7, Text: "the file ends in the middle\x1b[2J"}
	l.showReload(supervisor.ReloadResult{Problems: []supervisor.Problem{bad, bad}, Restart: []string{"audit"}})
	has("configuration: nothing changed; audit changed: counts when mcpvisor up is started anew; 2 faults",
		"/p/mcp.json:3:7: the file ends in the middle", "(and 1 more: mcpvisor config check)")
	if strings.Contains(shown(), "\x1b[2J") {
		t.Error("what stands in a file acts on the terminal")
	}
	l.showEvent(messages.Event{Kind: messages.EventPhase, Server: "one", Status: &messages.Status{Name: "one", Status: messages.Connected}})
	l.showEvent(messages.Event{Kind: messages.EventPins, Server: "one", Changed: []messages.ChangedTool{{Name: "echo", Held: true}}})
	res := supervisor.ReloadResult{}
	res.Added = []string{"one"}
	l.showReload(res)
	has("configuration: added one; 0 servers as before", "1 tool changed since approved, and held back: mcpvisor diff one (echo)",
		"1 tool changed since approved: mcpvisor diff one")
	foot := strings.Join(l.newFrame(time.Now(), 110, 30).foot, "\n")
	if strings.Contains(foot, "the middle") || strings.Contains(foot, "audit") || strings.Contains(shown(), "It waits for servers") {
		t.Errorf("what was mended is still told:\n%s", shown())
	}
	l.showEvent(messages.Event{Kind: messages.EventPins, Server: "one"})
	has("its tools are as they were approved")
}
