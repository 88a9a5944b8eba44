package sim

import (
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

type (
	someDue  struct{}
	dialDone struct{}
)

// TestATimerThatWasLeftIsNoticed has what is sent to an actor that has ended.
func TestATimerThatWasLeftIsNoticed(t *testing.T) {
	rec := history.NewRecorder(scenario.Plan{}, nil)
	if err := Bubble(func() {
		w := newSimulation(scenario.Plan{}, Options{}, rec, &pulse{})
		w.noteDeadLetter("other", someDue{}) // no actor of the manager
		time.Sleep(time.Second)
		w.noteEnd(&actor.PID{Id: "server"})
		w.noteDeadLetter("server", someDue{}) // on its way in the instant of the end
		time.Sleep(time.Second)
		w.noteDeadLetter("server", dialDone{}) // of no timer
		w.noteDeadLetter("server", someDue{})
	}); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, e := range rec.History().Events {
		texts = append(texts, e.Name+": "+e.Text)
	}
	if len(texts) != 1 || !strings.HasPrefix(texts[0], "I12: a timer was left: its message sim.someDue went to the actor server at 2s") {
		t.Errorf("%q", texts)
	}
}

// TestCloseLeavesNoTimer closes a manager a second after a server was lost, whose tools are to be withdrawn after five.
func TestCloseLeavesNoTimer(t *testing.T) {
	s := scenario.Scenario{
		Name: "lost", Duration: messages.Duration(20e9), Settle: messages.Duration(1e9),
		Servers: []scenario.Group{{Name: "a"}, {Name: "b", Kind: messages.HTTP}, {Name: "c", Connect: messages.Lazy, IdleTimeout: messages.Duration(30e9)}},
		Faults:  []scenario.Fault{{Fault: "crash", On: scenario.Selector{"a"}, At: messages.Duration(19500e6)}},
		Load:    []scenario.Load{{On: scenario.Selector{"c"}, Rate: 1, From: messages.Duration(15e9), For: messages.Duration(2e9)}},
	}
	p, err := s.Plan(1, scenario.Sim)
	if err != nil {
		t.Fatal(err)
	}
	h, err := Run(t.Context(), p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	lost := false
	for _, e := range h.Events {
		lost = lost || e.Kind == history.Down
		if e.Kind == history.Violation {
			t.Errorf("%s: %s", e.Name, e.Text)
		}
	}
	if !lost {
		t.Error("no server was lost")
	}
}
