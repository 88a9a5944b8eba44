package sim_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

// A manager that is stuck is a violation, and no failure of the harness.

func violationText(h *history.History, id string) string {
	for _, v := range invariant.Judge(h) {
		if v.ID == id && v.Answer == invariant.Violated {
			return v.Why
		}
	}
	return ""
}

// A function of the program that does not return holds its calls until their time is over, or the manager ends.
func TestCallsThatAreHeldAreFound(t *testing.T) {
	h := run(t, minutePlan(t), sim.Options{Config: func(cfg *supervisor.Config) {
		cfg.Interceptors = []supervisor.Interceptor{func(context.Context, *supervisor.Request, supervisor.Invoker) (*supervisor.Response, error) {
			select {}
		}}
	}})
	if text := violationText(h, "I2"); !strings.Contains(text, "reached no server, and its caller was told that it was not sent only at 1m0.1") {
		t.Errorf("I2: %q", text)
	}
	if l := leftGoroutines(h); len(l) == 0 {
		t.Error("nobody is left")
	}
}

func TestAStartThatNeverReturnsIsFound(t *testing.T) {
	h := run(t, minutePlan(t), withMiddleware("supervisor", func(actor.ReceiverContext, any) { select {} }))
	if text := violationText(h, "I9"); text == "" {
		t.Errorf("I9 holds: %q", violationTexts(h))
	}
	if v := strings.Join(violationTexts(h), "\n"); !strings.Contains(v, "Start has not returned after 10s") {
		t.Errorf("%s", v)
	}
}

// A Close that does not return is said so, and what is still there by then is not told as left behind.
func TestACloseThatNeverReturnsIsFound(t *testing.T) {
	h := run(t, minutePlan(t), withMiddleware("supervisor", func(_ actor.ReceiverContext, message any) {
		if fmt.Sprintf("%T", message) == "core.CloseAll" {
			select {}
		}
	}))
	v := strings.Join(violationTexts(h), "\n")
	if !strings.Contains(v, "what ends the agents and the manager has not returned within 5m0s: it waits in a select in supervisor.(*Manager).Close") {
		t.Errorf("%s", v)
	}
	if strings.Contains(v, "left in") {
		t.Errorf("entries are told as left: %s", v)
	}
}

// Over HTTP+SSE the answer to a POST says no more than that the message was taken, or refused: a message whose token is refused a
// second time fails, instead of waiting for an answer that no goroutine gives.
func TestARefusedTokenEndsACallOverSSE(t *testing.T) {
	h := run(t, planScenario(t, 1, scenario.Scenario{
		Name: "token", Duration: messages.Duration(60e9), Settle: messages.Duration(60e9),
		Servers: []scenario.Group{{Name: "a", Kind: messages.SSE, CallTimeout: messages.Duration(20e9)}},
		Faults: []scenario.Fault{{Fault: "unauthorized", With: map[string]string{"when": "call"}, On: scenario.Selector{"a"},
			At: messages.Duration(10e9), For: messages.Duration(30e9)}},
		Load: []scenario.Load{{Rate: 1, From: messages.Duration(15e9), For: messages.Duration(2e9)}},
	}), sim.Options{})
	refused := 0
	for _, e := range h.Events {
		if e.Kind == history.End && e.Class == messages.ClassUnauthorized {
			refused++
		}
		if e.Kind == history.End && e.Class == messages.ClassTimeout {
			t.Errorf("call %s waited for %s: %s", e.Call, e.Took, e.Text)
		}
	}
	if refused == 0 {
		t.Error("no call was refused")
	}
}
