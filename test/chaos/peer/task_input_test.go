package peer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A client that asks on for a task gives it the input for which it asks. One that has gone before it knew of the question owes nothing: over HTTP
// nothing tells the server so (seed 20996067), and a fault may keep it from heeding a cancellation (seed 20985188).
func TestInputThatATaskIsGiven(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` +
		`{"elicitation":{},"sampling":{},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	for _, c := range []struct {
		name            string
		polls           int
		gives, violates bool
	}{
		{"it is gone before the question", 0, false, false},
		{"it is gone with the first status that has the question", 1, false, false},
		{"it asks on and gives nothing", 3, false, true},
		{"it gives the input", 3, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := usualServer(messages.Stdio, messages.EraModern)
			server.Offers, server.Tasks = true, scenario.TasksRequired
			d := newDriver(t, peer.Config{Server: server, Seed: 1})
			d.open(1)
			send := func(id int, method, params string) {
				d.send(1, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`, id, method, params, meta))
			}
			for id := range 3 { // every third task asks for input
				send(id+1, "tools/call", fmt.Sprintf(`"name":"write","arguments":{"call":"c%d"}`, id+1))
			}
			d.advanceTime(2 * time.Second)
			for poll := range c.polls {
				for task := range 3 {
					send(10+3*poll+task, "tasks/get", fmt.Sprintf(`"taskId":"task-1-%d"`, task+1))
				}
				d.advanceTime(time.Second)
			}
			asks := strings.Contains(strings.Join(d.sent(), "\n"), `"input_required"`)
			if asks != (c.polls > 0) {
				t.Fatalf("a task asks for input: %t", asks)
			}
			for task := range 3 {
				if c.gives {
					send(90+task, "tasks/update", fmt.Sprintf(`"taskId":"task-1-%d","inputResponses":{"it":{"role":"assistant","content":{"type":"text","text":"s"},"model":"none"}}`, task+1))
				}
			}
			d.advanceTime(time.Minute)
			violations := d.notes(history.Violation)
			if c.violates != (len(violations) == 1) || c.violates && !strings.Contains(violations[0].Text, "and was given none") {
				t.Errorf("%+v", violations)
			}
		})
	}
}

// In the legacy era the question comes with the result of the task, for which the client has asked.
func TestInputThatALegacyTaskIsGiven(t *testing.T) {
	for name, waits := range map[string]bool{"it has given the task up": false, "it waits for the result and gives nothing": true} {
		t.Run(name, func(t *testing.T) {
			server := usualServer(messages.Stdio, messages.EraLegacy)
			server.Offers, server.Tasks = true, scenario.TasksRequired
			d := newDriver(t, peer.Config{Server: server, Seed: 1})
			d.open(1)
			d.send(1, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"sampling":{},"roots":{}},"clientInfo":{"name":"t","version":"1"}}}`)
			d.advanceTime(time.Second)
			d.send(1, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			for id := range 3 {
				d.send(1, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"write","arguments":{"call":"c%d"},"task":{}}}`, id+2, id+1))
			}
			d.advanceTime(500 * time.Millisecond)
			for task := range 3 {
				if waits {
					d.send(1, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tasks/result","params":{"taskId":"task-1-%d"}}`, task+10, task+1))
				}
			}
			d.advanceTime(time.Minute)
			if !strings.Contains(strings.Join(d.sent(), "\n"), `"input_required"`) {
				t.Fatal("no task asks for input")
			}
			if violations := d.notes(history.Violation); waits != (len(violations) == 1) || waits && !strings.Contains(violations[0].Text, "and was given none") {
				t.Errorf("%+v", violations)
			}
		})
	}
}
