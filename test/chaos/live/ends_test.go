package live_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/live"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestAStoppedProcessEnds: a process that stands still hears nothing, and a crash ends it all the same.
func TestAStoppedProcessEnds(t *testing.T) {
	h := run(t, scenario.Scenario{
		Name: "stopped", Duration: messages.Duration(4 * time.Second), Servers: []scenario.Group{{Name: "s"}},
		Faults: []scenario.Fault{
			{Fault: "stop", At: messages.Duration(2 * time.Second), For: messages.Duration(time.Second)},
			{Fault: "crash", With: map[string]string{"signal": "SEGV"}, At: messages.Duration(2500 * time.Millisecond)},
		},
		Manager: scenario.Manager{Cap: messages.Duration(time.Second)},
	})
	opened, released := 0, 0
	for _, e := range h.Events {
		switch e.Kind {
		case history.Opened:
			opened++
		case history.Released:
			released++
		default:
		}
	}
	if opened < 2 || released != opened {
		t.Errorf("%d connections were opened and %d released, want two of each at least", opened, released)
	}
}

// TestAnEndedContextEndsTheRun: everything is closed in order, and nothing is left.
func TestAnEndedContextEndsTheRun(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	h, err := live.Run(ctx, planScenario(t, scenario.Scenario{
		Name: "interrupted", Duration: messages.Duration(time.Hour),
		Servers: []scenario.Group{{Name: "p", Count: 3}, {Name: "w", Count: 2, Kind: messages.HTTP}},
	}), live.Options{Progress: func(p live.Progress) {
		if p.Connected == p.Servers {
			cancel()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	last := h.Events[len(h.Events)-1]
	if last.Kind != history.Resources || last.House == nil || last.House.Processes != 0 || len(last.House.Left) > 0 {
		t.Errorf("the last word is %+v, %+v", last, last.House)
	}
}

// TestAServerOfThisProgramIsRefused: what has neither a process nor a socket cannot be run here, and the error says so.
func TestAServerOfThisProgramIsRefused(t *testing.T) {
	p := planScenario(t, scenario.Scenario{
		Name: "inside", Duration: messages.Duration(time.Second), Servers: []scenario.Group{{Name: "s"}},
	})
	p.Servers[0].Kind = messages.SDK
	h, err := live.Run(context.Background(), p, live.Options{})
	var e *live.Error
	if h != nil || !errors.As(err, &e) {
		t.Errorf("%v, %v", h, err)
	}
}

func ExampleRun() {
	s := scenario.Scenario{
		Name: "blip", Duration: messages.Duration(2 * time.Second), Servers: []scenario.Group{{Name: "files"}},
		Faults: []scenario.Fault{{Fault: "crash", At: messages.Duration(time.Second)}},
	}
	plan, err := s.Plan(1, scenario.Real)
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := live.Run(context.Background(), plan, live.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range invariant.Judge(h) {
		if v.ID == "I12" {
			fmt.Println(v.ID, v.Answer)
		}
	}
	// Output: I12 holds
}
