package sim_test

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// A server whose credentials appear by themselves is connected again soon after they did, and its owner has done nothing about it.
func TestCredentialsAppearByThemselves(t *testing.T) {
	for _, group := range []scenario.Group{{Kind: messages.HTTP}, {Kind: messages.HTTP, Web: scenario.WebPlain}, {Kind: messages.SSE}} {
		group.Name, group.Renews = "s", true
		h := run(t, planScenario(t, 1, scenario.Scenario{
			Name: "renewals", Duration: messages.Duration(40 * time.Second), Settle: messages.Duration(time.Minute), Servers: []scenario.Group{group}, Load: []scenario.Load{{Rate: 2}},
			Faults: []scenario.Fault{
				{Fault: "unauthorized", At: messages.Duration(5 * time.Second), For: messages.Duration(5 * time.Second)},
				{Fault: "reset", At: messages.Duration(6 * time.Second)},
			},
		}), sim.Options{})
		refused, back := false, false
		for _, e := range h.Events {
			if e.Kind == history.Phase {
				refused = refused || e.Phase == messages.NeedsAuth
				back = back || refused && e.Phase == messages.Connected && e.T < 15*time.Second
			}
		}
		if !refused || !back {
			t.Errorf("%s %s: it needed credentials: %t, and was connected again: %t", group.Kind, group.Web, refused, back)
		}
	}
}
