package live_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// An answer that is cut in two is recorded when a process writes its second half, as in the simulation.
func TestAnswersInTwoHalvesAreRecorded(t *testing.T) {
	h := run(t, scenario.Scenario{
		Name: "halves", Duration: messages.Duration(4 * time.Second), Servers: []scenario.Group{{Name: "s", Kind: messages.Stdio}},
		Load:   []scenario.Load{{Rate: 10, From: messages.Duration(time.Second)}},
		Faults: []scenario.Fault{{Fault: "half-line", On: []string{"s"}, At: messages.Duration(1500 * time.Millisecond), For: messages.Duration(time.Second)}},
	})
	answered, isOn, cut := map[string]bool{}, false, 0
	for _, e := range h.Events {
		if e.Kind == history.Answered && e.Method == "tools/call" {
			answered[e.ID] = true
		}
	}
	for _, e := range h.Events {
		switch {
		case e.Kind == history.FaultOn || e.Kind == history.FaultOff:
			isOn = e.Kind == history.FaultOn
		case isOn && e.Kind == history.Received && e.Method == "tools/call":
			if cut++; !answered[e.ID] {
				t.Errorf("the answer to the call %s of %s is not recorded", e.Call, e.T)
			}
		}
	}
	if cut == 0 {
		t.Error("no call came while answers were cut in two")
	}
}
