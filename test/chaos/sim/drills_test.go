package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/drills"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// What a drill finds is a violation of the day, and so is a drill that fails, waits for ever or leaves a goroutine behind.
func TestADrillThatFindsSomethingOrDoesNotEndIsAViolation(t *testing.T) {
	for _, c := range []struct {
		name            string
		play            func(drills.Options)
		invariant, text string
	}{
		{"finds", func(o drills.Options) {
			o.Report(drills.Finding{Invariant: "I24", Server: "files", Text: "a wrong name"})
		}, "I24", "a wrong name"},
		{"panics", func(o drills.Options) { o.Progress("ask"); panic("broken") }, "I9", "the drill ask does not end: panic: broken"},
		{"waits", func(o drills.Options) { o.Progress("ask"); <-make(chan int) }, "I9", "the drill ask does not end"},
		{"leaves", func(o drills.Options) { o.Progress("ask"); go func() { <-make(chan int) }() }, "I9", "the drill ask does not end"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := history.NewRecorder(scenario.Plan{}, nil)
			recordDrills(Options{}, time.Minute, rec, c.play)
			events := rec.History().Events
			if len(events) != 1 || events[0].Kind != history.Violation || events[0].Name != c.invariant || !strings.Contains(events[0].Text, c.text) || events[0].T != time.Minute || events[0].Server != "" {
				t.Errorf("the record has %+v", events)
			}
		})
	}
}

// A day of no servers' faults with all drills finds nothing.
func TestADayWithDrillsHolds(t *testing.T) {
	s := scenario.Scenario{Name: "drills", Servers: []scenario.Group{{Name: "one"}}, Duration: 1_000_000_000 * 10}
	s.Manager.Drills = 100
	plan, err := s.Plan(1, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Run(t.Context(), plan, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range h.Events {
		if e.Kind == history.Violation {
			t.Errorf("%s: %s", e.Name, e.Text)
		}
	}
}
