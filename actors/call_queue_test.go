package actors

import (
	"context"
	"testing"

	"github.com/mcpvisor/mcpvisor/actors/internal/queue"
	"github.com/mcpvisor/mcpvisor/messages"
)

func TestLimitsOf(t *testing.T) {
	for _, c := range []struct {
		spec             messages.Spec
		inFlight, queued int // the manager's own
		want             queue.Limits
		some             bool
	}{
		{},
		{spec: messages.Spec{MaxQueued: 5}},
		{inFlight: -1, queued: 5},
		{spec: messages.Spec{MaxInFlight: 2}, want: queue.Limits{InFlight: 2, Waiting: messages.DefaultMaxQueued}, some: true},
		{spec: messages.Spec{MaxInFlight: 2, MaxQueued: -1}, queued: 9, want: queue.Limits{InFlight: 2}, some: true},
		{spec: messages.Spec{MaxInFlight: 2}, inFlight: 1, queued: 9, want: queue.Limits{InFlight: 2, Waiting: 9}, some: true},
		{spec: messages.Spec{MaxQueued: 3}, inFlight: 1, queued: -1, want: queue.Limits{InFlight: 1, Waiting: 3}, some: true},
		{spec: messages.Spec{MaxInFlight: -1}, inFlight: 1},
	} {
		if got, some := limitsOf(&c.spec, c.inFlight, c.queued); some != c.some || some && got != c.want {
			t.Errorf("%+v with %d, %d: %+v, %v", c.spec, c.inFlight, c.queued, got, some)
		}
	}
}

// A call for which there is room costs a lock and makes nothing; where there is no bound there is nothing to lock.
func TestRoomCostsNothing(t *testing.T) {
	turns := new(Cell).setCallLimits(queue.Limits{InFlight: 1})
	ctx := messages.WithCaller(context.Background(), "agent")
	if n := testing.AllocsPerRun(100, func() {
		if in, err := turns.acquireSlot(ctx, nil); !in || err != nil {
			t.Fatal(in, err)
		}
		turns.releaseSlot()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := new(Cell).callQueue.waitingCalls(); n != 0 {
		t.Errorf("%d wait where nobody has to", n)
	}
}
