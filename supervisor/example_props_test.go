package supervisor_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// The manager as the child of an actor of the program: its parent's strategy supervises it, and its PID takes the messages of package
// messages.
func ExampleProps() {
	cfg := supervisor.Config{CallWait: time.Minute, InProcess: inProcess(),
		Servers: map[string]supervisor.Spec{"greeter": {Type: supervisor.SDK}}}
	done := make(chan string)
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }))
	agent := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch msg := ctx.Message().(type) {
		case *actor.Started:
			manager := ctx.Spawn(supervisor.Props(cfg, nil))
			ctx.Request(manager, &messages.CallTool{Tool: "mcp__greeter__greet", Arguments: []byte(`{"name":"Ada"}`)})
		case *messages.CallToolReply:
			done <- msg.GetOutcome()
		}
	}))
	fmt.Println(<-done)
	_ = system.Root.StopFuture(agent).Wait() // the manager and its servers end with it
	system.Shutdown()
	// Output: result
}

// mcpServers is a manager as a tree of suture takes one. String keeps the tree from printing the Config, which may hold credentials.
type mcpServers struct {
	cfg     supervisor.Config
	started func(*supervisor.Manager)
}

func (s mcpServers) Serve(ctx context.Context) error { return supervisor.Serve(ctx, s.cfg, s.started) }
func (mcpServers) String() string                    { return "MCP servers" }

// In an errgroup, a run group or a tree of suture the manager is a function that runs until its context ends.
func ExampleServe() {
	ctx, cancel := context.WithCancel(context.Background())
	part := mcpServers{
		cfg: supervisor.Config{InProcess: inProcess(), Servers: map[string]supervisor.Spec{"greeter": {Type: supervisor.SDK}}},
		started: func(m *supervisor.Manager) {
			go func() {
				fmt.Println(m.Ready(ctx, "greeter"))
				cancel()
			}()
		},
	}
	// tree.Add(part) with suture; group.Go(func() error { return part.Serve(ctx) }) with an errgroup
	fmt.Println(part, "end:", part.Serve(ctx))
	// Output:
	// <nil>
	// MCP servers end: context canceled
}
