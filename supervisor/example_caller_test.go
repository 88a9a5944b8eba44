package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// A person is asked about some tools: the rules say which, Ask puts the question.
func ExampleConfig_ask() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess: inProcess(),
		Servers:   map[string]supervisor.Spec{"hi": {Type: supervisor.SDK, Name: "greeter"}},
		Access:    access.Rules{Own: access.Set{Default: access.Ask}},
		Ask: func(_ context.Context, r supervisor.AskRequest) (supervisor.AskAnswer, error) {
			fmt.Printf("may %s:%s be called with %s?\n", r.Server, r.Tool, r.Arguments)
			return supervisor.AskNo, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	_ = m.Settled(ctx, "hi")
	_, err = m.CallTool(ctx, "mcp__hi__greet", map[string]any{"name": "Ada"})
	fmt.Println(errors.Is(err, supervisor.ErrDenied), errors.Is(err, supervisor.ErrNotSent))
	// Output:
	// may hi:greet be called with {"name":"Ada"}?
	// true true
}

// Two sub-agents share a server that takes one call at a time: they take turns, however many calls each of them makes.
func ExampleWithCaller() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess: inProcess(),
		Servers:   map[string]supervisor.Spec{"hi": {Type: supervisor.SDK, Name: "greeter", MaxInFlight: 1}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	_ = m.Settled(ctx, "hi")
	for _, agent := range []string{"planner", "critic"} {
		res, err := m.CallTool(supervisor.WithCaller(ctx, agent), "mcp__hi__greet", map[string]any{"name": agent})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(res.Text())
	}
	// Output:
	// hello, planner
	// hello, critic
}

// A program that is told to end lets the calls in flight finish and ends the servers: for half of the time, and no longer than
// the time.
func ExampleManager_Close() {
	until, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m, err := supervisor.Start(until, supervisor.Config{InProcess: inProcess()})
	if err != nil {
		fmt.Println(err)
		return
	}
	stop() // in a program: <-until.Done()

	ending, cancel := context.WithTimeout(context.Background(), 10*time.Second) // not until, which has ended
	defer cancel()
	fmt.Println(m.Close(ending))
	// Output: <nil>
}

// Another actor removes by message a server that was added while the manager runs; those of Config.Servers stay. Done comes when its tools are out of the catalog.
func ExampleManager_PID_removeServer() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{InProcess: inProcess()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	if err := m.Connect(ctx, "hi", supervisor.Spec{Type: supervisor.SDK, Name: "greeter"}); err != nil {
		fmt.Println(err)
		return
	}
	answer, err := m.System().Root.RequestFuture(m.PID(), &messages.RemoveServer{Name: "hi"}, 10*time.Second).Result()
	if done, ok := answer.(*messages.Done); ok && err == nil {
		fmt.Println(done.GetFailure() == nil, m.Tools().Len())
	}
	// Output: true 0
}
