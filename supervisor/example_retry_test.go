package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// A loop that makes a call again where it may succeed later and cannot run twice, and nowhere else. The server is down here for a
// moment, because it is connected only now.
func ExampleError_MayRetry() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{InProcess: inProcess(),
		Servers: map[string]supervisor.Spec{"greeter": {Type: supervisor.SDK}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := func(server, tool string) (string, error) {
		for {
			out, err := m.CallServerTool(ctx, server, tool, map[string]any{"name": "Ada"})
			var e *supervisor.Error
			if !errors.As(err, &e) {
				return out.Text(), err
			}
			at, ok := e.MayRetry()
			if !ok {
				return "", err
			}
			select {
			case <-time.After(time.Until(at)):
			case <-ctx.Done():
				return "", err
			}
		}
	}
	fmt.Println(call("greeter", "greet"))
	_, err = call("greter", "greet")
	fmt.Println(err)
	_ = m.Close(ctx)
	// Output:
	// hello, Ada <nil>
	// server "greter", tool "greet": no such server is configured (not sent); did you mean "greeter"?
}

// A wait for one server ends when it can be called, or with the reason why it cannot be.
func ExampleManager_Ready() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{InProcess: inProcess(), Servers: map[string]supervisor.Spec{
		"greeter": {Type: supervisor.SDK}, "resting": {Type: supervisor.SDK, Disabled: true}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Ready(ctx, "greeter"), len(m.Tools().Server("greeter")) > 0)
	fmt.Println(m.Ready(ctx, "resting"))
	_ = m.Close(ctx)
	// Output:
	// <nil> true
	// server "resting": it is disabled; enable it first
}
