package sim_test

import (
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/actors/lifecycle"
)

// loops is a message that an actor sends to itself without an end.
type loops struct{}

func TestALoopInOneInstantIsNamed(t *testing.T) {
	h := run(t, minutePlan(t), withMiddleware("server/b", func(c actor.ReceiverContext, message any) {
		switch message.(type) {
		case lifecycle.Granted, loops:
			c.ActorSystem().Root.Send(c.Self(), loops{})
		}
	}))
	said := strings.Join(violationTexts(h), "\n")
	requireTexts(t, said, "b: more than 21000 things happened in one instant: something goes on without an end",
		"the actor server/b handled sim_test.loops 1000 times")
	if text := violationText(h, "I9"); !strings.Contains(text, "without an end") {
		t.Errorf("I9: %q", text)
	}
}
