package sim

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestWhoIsStuck: whether the harness waits inside of the manager, or for itself.
func TestWhoIsStuck(t *testing.T) {
	deaf := func(string) []actor.PropsOption {
		return []actor.PropsOption{actor.WithReceiverMiddleware(func(actor.ReceiverFunc) actor.ReceiverFunc {
			return func(actor.ReceiverContext, *actor.MessageEnvelope) {}
		})}
	}
	var failed *BubbleError
	err := Bubble(func() {
		_, _ = supervisor.Start(context.Background(), supervisor.Config{ActorOptions: deaf}) // it never returns
	})
	if !errors.As(err, &failed) {
		t.Fatalf("a manager that does not answer: %v", err)
	}
	if where, stuck := failed.stuckInManager(); !stuck || !strings.Contains(where, "supervisor.") {
		t.Errorf("a manager that does not answer: %q, %v", where, stuck)
	}
	if err := Bubble(func() { <-make(chan int) }); !errors.As(err, &failed) {
		t.Fatalf("a harness that waits for itself: %v", err)
	}
	if where, stuck := failed.stuckInManager(); stuck {
		t.Errorf("a harness that waits for itself: %q", where)
	}
}
