package live_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestAgentsOfAGateway plays agents on pipes and over sockets before real servers: what they were told is what the servers saw.
func TestAgentsOfAGateway(t *testing.T) {
	at := func(d time.Duration) messages.Duration { return messages.Duration(d) }
	h := run(t, scenario.Scenario{
		Name: "agents", Duration: at(5 * time.Second),
		Servers: []scenario.Group{{Name: "one", Offers: true}, {Name: "two", Kind: messages.HTTP, Era: messages.EraModern, Offers: true}},
		Faults:  []scenario.Fault{{Fault: "crash", On: scenario.Selector{"one"}, At: at(3 * time.Second)}},
		Agents: []scenario.Agents{
			{As: "anna", Rate: 10, From: at(time.Second)}, {As: "ben", Over: scenario.OverHTTP, Rate: 10, From: at(time.Second)},
			{As: "ben", Era: messages.EraModern, Over: scenario.OverHTTP, View: "two", Rate: 10, From: at(time.Second)},
		},
	})
	for _, id := range []string{"I3", "I12", "I24", "I25", "I26", "I27", "I28"} {
		check, ok := invariant.Find(id)
		if v := check.Judge(h); !ok || v.Answer == invariant.Violated {
			t.Errorf("%s: %s %s", id, v.Answer, v.Why)
		}
	}
	seen := map[history.Kind]int{}
	for _, e := range h.Events {
		if e.Agent != "" {
			seen[e.Kind]++
		}
	}
	for _, kind := range []history.Kind{history.Joined, history.Parted, history.Asked, history.Replied, history.Noticed, history.Call, history.End} {
		if seen[kind] == 0 {
			t.Errorf("nothing was %s", kind)
		}
	}
}
