package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
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

// Where changed tools are held back, none is offered before it is approved, also over another connection; a manager that only warns is
// noticed.
func TestChangedToolsAreHeldBack(t *testing.T) {
	at := func(d time.Duration) messages.Duration { return messages.Duration(d) }
	plan := planScenario(t, 1, scenario.Scenario{
		Name: "held", Duration: at(2 * time.Minute), Settle: at(30 * time.Second),
		Servers: []scenario.Group{{Name: "a", Pin: messages.PinHold}, {Name: "b", Pin: messages.PinHold}, {Name: "c"}}, Manager: scenario.Manager{Pins: true},
		Faults: []scenario.Fault{
			{Fault: "rug-pull", At: at(10 * time.Second)}, {Fault: "crash", On: scenario.Selector{"a", "b"}, At: at(20 * time.Second)},
		},
		Commands: []scenario.Command{{Do: "approve", On: scenario.Selector{"a"}, At: at(30 * time.Second)}},
		Load:     []scenario.Load{{Tool: scenario.WriteTool, Rate: 1}},
	})
	h := run(t, plan, sim.Options{})
	for _, text := range violationTexts(h) {
		t.Errorf("a manager that holds back: %s", text)
	}
	// The tools that wait are called in vain, those that do not wait are not.
	refused := map[string]int{}
	for i := range h.Events {
		if e := &h.Events[i]; e.Kind == history.End && e.Class == messages.ClassDenied {
			refused[e.Server]++
		}
	}
	if refused["a"] == 0 || refused["b"] <= refused["a"] || refused["c"] > 0 {
		t.Errorf("refused because they wait for an approval: %v; a was approved after 20 s, b never, and c holds nothing back", refused)
	}
	warns := sim.Options{Config: func(cfg *supervisor.Config) { cfg.Pins = nil }}
	texts := strings.Join(violationTexts(run(t, plan, warns)), "\n")
	for _, server := range []string{"a", "b"} {
		if !strings.Contains(texts, server+": the tool write is offered with a definition that nobody has approved") {
			t.Errorf("a manager that holds nothing back is not noticed at %s:\n%s", server, texts)
		}
	}
}
