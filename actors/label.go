package actors

import (
	"context"
	"runtime/pprof"

	"github.com/mcpvisor/mcpvisor/messages"
)

// LabelServer and LabelTransport are the labels of package runtime/pprof that say whose a goroutine is, and how its server is
// reached. They are on what belongs to one server alone: the steps of its attempts, and what those begin (the readers of its
// connection, its callbacks, its serve function). An actor's turn and a caller's goroutine have none of them: actors would
// show whoever woke them, and callers' labels are their own. A connection that the HTTP client keeps for several servers
// bears the labels of the one that it was opened for.
const (
	LabelServer    = "server"
	LabelTransport = "transport"
)

// labelGoroutine marks the goroutine that it is called on, and those that it begins.
func labelGoroutine(name string, spec *messages.Spec) {
	kind := ""
	if spec != nil {
		kind = string(spec.Kind())
	}
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(LabelServer, name, LabelTransport, kind)))
}

// Dispatcher runs the turns of actors like the default of the actor library, without the labels of whoever woke them.
type Dispatcher struct{}

// Schedule implements actor.Dispatcher.
func (Dispatcher) Schedule(turn func()) {
	go func() {
		pprof.SetGoroutineLabels(context.Background())
		turn()
	}()
}

// Throughput implements actor.Dispatcher: so many messages are one turn.
func (Dispatcher) Throughput() int { return 300 }
