package live_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/live"
	"github.com/mcpvisor/mcpvisor/test/chaos/performer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestMain makes the test binary a peer when it is started as one.
func TestMain(m *testing.M) {
	performer.Main(os.Args[1:])
	if len(os.Args) == 2 && os.Args[1] == doomedArgument {
		runDoomed()
	}
	os.Exit(m.Run())
}

func planScenario(t testing.TB, s scenario.Scenario) scenario.Plan {
	t.Helper()
	p, err := s.Plan(1, scenario.Real)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t testing.TB, s scenario.Scenario) *history.History {
	t.Helper()
	h, err := live.Run(context.Background(), planScenario(t, s), live.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestEveryKindWithoutFaults is a day on which nothing breaks: every kind and era of server connects, every call that is
// made while they are connected is answered, and nothing is left.
func TestEveryKindWithoutFaults(t *testing.T) {
	var groups []scenario.Group
	for _, kind := range []messages.TransportKind{messages.Stdio, messages.HTTP, messages.SSE, messages.WebSocket} {
		for _, era := range []messages.Era{messages.EraLegacy, messages.EraModern} {
			if kind == messages.SSE && era == messages.EraModern {
				continue // that transport is older than the era
			}
			groups = append(groups, scenario.Group{Name: fmt.Sprintf("%s-%s", kind, era), Kind: kind, Era: era})
		}
	}
	h := run(t, scenario.Scenario{
		Name: "quiet", Duration: messages.Duration(2 * time.Second), Servers: groups,
		Load: []scenario.Load{{Rate: 20, From: messages.Duration(time.Second)}},
	})
	connected, released := map[string]bool{}, map[string]int{}
	for _, e := range h.Events {
		switch e.Kind {
		case history.Status:
			connected[e.Server] = e.Phase == messages.Connected
		case history.End:
			if e.Outcome != messages.OutcomeResult && e.Outcome != messages.OutcomeNotSent || e.Class == messages.ClassTimeout {
				t.Errorf("call %s of %s ended as %s %s: %s", e.Call, e.Server, e.Outcome, e.Class, e.Text)
			}
		case history.Released:
			released[e.Server]++
		case history.Canary, history.Violation:
			t.Errorf("%s: %s", e.Server, e.Text)
		case history.Resources:
			if e.Text == "after close" && len(e.House.Left) > 0 {
				t.Errorf("left: %q", e.House.Left)
			}
		default:
		}
	}
	for _, s := range h.Plan.Servers {
		if !connected[s.Name] || released[s.Name] != 1 {
			t.Errorf("%s: connected %v, %d connections were released", s.Name, connected[s.Name], released[s.Name])
		}
	}
}
