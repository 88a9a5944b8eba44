package sim_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// An answer that is cut in two is whole when its second half has come. Seed 20381425: it made a task of its call, and I4 did not know the
// task by whose name the call was cancelled.
func TestAnswersInTwoHalvesAreRecorded(t *testing.T) {
	for _, tasks := range []string{"", scenario.TasksRequired} {
		t.Run("tasks "+tasks, func(t *testing.T) {
			h := run(t, planScenario(t, 1, scenario.Scenario{
				Name: "halves", Duration: messages.Duration(20 * time.Second), Settle: messages.Duration(time.Minute),
				Servers: []scenario.Group{{Name: "s", Kind: messages.Stdio, Tasks: tasks}},
				Load:    []scenario.Load{{Rate: 1}},
				Faults:  []scenario.Fault{{Fault: "half-line", On: []string{"s"}, At: messages.Duration(5 * time.Second), For: messages.Duration(5 * time.Second)}},
			}), sim.Options{})
			answered, fired := map[string]bool{}, false
			for _, e := range h.Events {
				fired = fired || e.Kind == history.Fired
				if e.Kind == history.Answered && e.Method == "tools/call" && (e.Task != "") == (tasks != "") {
					answered[e.ID] = true
				}
			}
			if !fired {
				t.Fatal("no answer was cut in two")
			}
			for _, e := range h.Events {
				if e.Kind == history.Received && e.Method == "tools/call" && !answered[e.ID] {
					t.Errorf("the answer to the call %s of %s is not recorded", e.Call, e.T)
				}
			}
		})
	}
}
