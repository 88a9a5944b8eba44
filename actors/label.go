package actors

import (
	"context"
	"runtime/pprof"

	"github.com/mcpvisor/mcpvisor/messages"
)

// LabelServer and LabelTransport are the labels of package runtime/pprof that name the server of a goroutine and its transport.
// They are on goroutines that belong to one server: the steps of its attempts, and what those begin (the readers of its
// connection, its callbacks, its serve function). Turns of actors and goroutines of callers have none: an actor's turn would
// show the labels of the goroutine that woke it, and a caller's labels are its own. A connection that the HTTP client keeps for
// several servers has the labels of the one that it was opened for.
const (
	LabelServer    = "server"
	LabelTransport = "transport"
)

// labelGoroutine labels the goroutine that it is called on, and those that it begins afterwards.
func labelGoroutine(name string, spec *messages.Spec) {
	kind := ""
	if spec != nil {
		kind = string(spec.Kind())
	}
	// The labels come from an empty context: the caller's own do not belong to this work.
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(LabelServer, name, LabelTransport, kind)))
}

// Dispatcher runs the turns of actors like the default of the actor library, without the labels of the goroutine that woke them.
type Dispatcher struct{}

// Schedule implements actor.Dispatcher.
func (Dispatcher) Schedule(turn func()) {
	go func() {
		pprof.SetGoroutineLabels(context.Background())
		turn()
	}()
}

// Throughput implements actor.Dispatcher: an actor yields after so many messages. 300 is the library's default.
func (Dispatcher) Throughput() int { return 300 }
