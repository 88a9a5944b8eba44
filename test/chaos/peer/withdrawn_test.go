package peer_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// A client does not answer a question that was taken back, unless a fault kept it from hearing of that: the stream of a call that was cut is open again
// only some time after the fault has ended (seed 30302570).
func TestAnswersToWithdrawnQuestions(t *testing.T) {
	for _, c := range []struct {
		name string
		// cut is how long after the question the cuts of streams end, which begin with it; 0 for no cut. answers is when the client answers.
		cut, answers time.Duration
		violates     bool
	}{
		{"it answers in time", 0, 100 * time.Millisecond, false},
		{"it answers when the question is on its way back", 0, 130 * time.Millisecond, false},
		{"it answers later", 0, 300 * time.Millisecond, true},
		{"it answers later, after a cut", 20 * time.Millisecond, 300 * time.Millisecond, false},
		{"it answers later, during the cuts", time.Second, 300 * time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := usualServer(messages.HTTP, messages.EraLegacy)
			server.Offers, server.Web = true, scenario.WebNumbered
			d := newDriver(t, peer.Config{Server: server, Seed: 1})
			d.open(1)
			d.send(1, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"sampling":{},"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`)
			d.advanceTime(time.Second)
			d.send(1, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			d.advanceTime(time.Second)
			for id := range 6 { // every third call asks a question, and the second question is taken back
				if id == 5 && c.cut > 0 {
					d.begin(scenario.PlannedFault{ID: 1, Fault: "cut-stream", Server: server.Name, With: map[string]string{"every": "300ms"}})
				}
				d.send(1, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"write","arguments":{"call":"c%d"}}}`, id+1, id+1))
			}
			begin := d.now
			if c.cut > 0 && c.cut < c.answers {
				d.advanceTime(c.cut)
				d.end(scenario.PlannedFault{ID: 1, Fault: "cut-stream", Server: server.Name})
			}
			d.advanceTime(begin + c.answers - d.now)
			d.send(1, `{"jsonrpc":"2.0","id":"ask-6","result":{"roots":[]}}`)
			d.advanceTime(time.Second)
			if violations := d.notes(history.Violation); c.violates != (len(violations) == 1) {
				t.Errorf("%+v", violations)
			}
		})
	}
}
