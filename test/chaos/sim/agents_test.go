package sim_test

import (
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// dayOfAgents is a day on which agents of both eras and both ways come to servers of both eras, one of which crashes.
func dayOfAgents(t *testing.T, seed uint64) *history.History {
	t.Helper()
	at := func(d time.Duration) messages.Duration { return messages.Duration(d) }
	s := scenario.Scenario{
		Name: "agents", Duration: at(40 * time.Second),
		Servers: []scenario.Group{
			{Name: "one", Offers: true, Latency: at(60 * time.Millisecond)}, {Name: "two", Kind: messages.HTTP, Era: messages.EraModern, Offers: true}, {Name: "three", Kind: messages.SSE},
			{Name: "four", Tasks: scenario.TasksOptional, Offers: true}, {Name: "five", Kind: messages.HTTP, Era: messages.EraModern, Tasks: scenario.TasksRequired},
		},
		Faults: []scenario.Fault{
			{Fault: "crash", On: scenario.Selector{"one"}, At: at(15 * time.Second)}, {Fault: "list-changed", On: scenario.Selector{"three"}, At: at(20 * time.Second)},
			{Fault: "endless-progress", On: scenario.Selector{"one"}, At: at(2 * time.Second), For: at(10 * time.Second)},
			{Fault: "endless-progress", On: scenario.Selector{"three"}, At: at(25 * time.Second), For: at(10 * time.Second)},
			{Fault: "black-hole", On: scenario.Selector{"two"}, At: at(30 * time.Second), For: at(5 * time.Second)},
		},
		Agents: []scenario.Agents{
			{As: "anna", Count: 2, Rate: 3}, {As: "anna", Over: scenario.OverHTTP, Rate: 3}, {As: "ben", Over: scenario.OverHTTP, Rate: 3},
			{As: "ben", Era: messages.EraModern, Over: scenario.OverHTTP, Rate: 3}, {As: "ben", Era: messages.EraModern, View: "one", Rate: 3},
		},
	}
	p, err := s.Plan(seed, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	h, err := sim.Run(t.Context(), p, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestAgentsOfAGateway plays days of agents until everything that agents do has happened, and nothing is violated on any of them. A server
// asks at every third call, and few of the questions are certainly an agent's: how many days that takes depends on how calls meet.
func TestAgentsOfAGateway(t *testing.T) {
	const days = 40
	missing := map[string]bool{}
	for _, word := range []string{
		"joined legacy lines", "joined legacy http", "joined modern lines", "joined modern http", "parted ", "call ", "end result", "end unknown", "end not-sent",
		"left ", "replied tools/list", "replied resources/read", "replied prompts/get", "replied resources/subscribe", "replied completion/complete",
		"replied logging/setLevel", "asked subscriptions/listen", "noticed notifications/resources/updated", "noticed notifications/tools/list_changed",
		"noticed notifications/progress", "questioned elicitation/create", "questioned sampling/createMessage", "questioned roots/list",
		"replied unknown-method", "replied bad-cursor", "replied no-token", "replied foreign-session", "replied foreign-origin",
		"stream-cut tools/call", "stream-back tools/call",
		"tasked ", "replied tasks/get", "replied tasks/result", "replied tasks/list", "replied tasks/cancel", "replied tasks/update", "replied foreign-task",
		"noticed notifications/tasks", "noticed notifications/tasks/status",
	} {
		missing[word] = true
	}
	for seed := uint64(1); seed <= days && len(missing) > 0; seed++ {
		h := dayOfAgents(t, seed)
		for _, v := range invariant.Judge(h) {
			if v.Answer == invariant.Violated {
				t.Errorf("seed %d: %s at %s: %s", seed, v.ID, v.At, v.Why)
			}
		}
		for i := range h.Events {
			e := &h.Events[i]
			switch {
			case e.Side == history.Agent:
				delete(missing, string(e.Kind)+" "+e.Method)
				delete(missing, string(e.Kind)+" "+e.Name)
			case e.Agent != "":
				delete(missing, string(e.Kind)+" "+string(e.Outcome))
			}
		}
	}
	for _, word := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("%q did not happen on %d days", word, days)
	}
}

// TestASessionWithACallIsInUse plays a day on which a call goes on for two minutes after its agent was killed (seed 20003076): its session is
// in use until the call ends, and the endpoint may not forget it before.
func TestASessionWithACallIsInUse(t *testing.T) {
	text, err := os.ReadFile("testdata/left_with_a_call.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse("left_with_a_call.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := s.Plan(s.Seed, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	h, err := sim.Run(t.Context(), p, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range violationTexts(h) {
		t.Error(text)
	}
}
