package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// A tool changes after it was shown. The manager says so until the owner approves, and one that does not remember is noticed.
func TestChangedToolsAreSaidAndApproved(t *testing.T) {
	plan := planScenario(t, 1, scenario.Scenario{
		Name: "pins", Duration: messages.Duration(2 * time.Minute), Settle: messages.Duration(30 * time.Second),
		Servers: []scenario.Group{{Name: "a"}, {Name: "b"}}, Manager: scenario.Manager{Pins: true},
		Faults:   []scenario.Fault{{Fault: "rug-pull", At: messages.Duration(10 * time.Second), Every: messages.Duration(40 * time.Second), Times: 2}},
		Commands: []scenario.Command{{Do: "approve", On: scenario.Selector{"a"}, At: messages.Duration(30 * time.Second)}},
	})
	for _, text := range violationTexts(run(t, plan, sim.Options{})) {
		t.Errorf("a manager that remembers: %s", text)
	}
	forgets := sim.Options{Config: func(cfg *supervisor.Config) { cfg.Pin = messages.PinOff }}
	texts := strings.Join(violationTexts(run(t, plan, forgets)), "\n")
	for _, server := range []string{"a", "b"} {
		if !strings.Contains(texts, server+": the definition of the tool write is not the one that was shown first") {
			t.Errorf("a manager that does not remember is not noticed at %s:\n%s", server, texts)
		}
	}
}
