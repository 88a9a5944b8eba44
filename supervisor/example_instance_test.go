package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// A server that keeps a state by connection has an instance for each caller: its own process or session, with its own restarts and
// sign-in. The tools are in the catalog once.
func ExampleWithCaller_instances() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess: inProcess(),
		Servers: map[string]supervisor.Spec{
			"hi": {Type: supervisor.SDK, Name: "greeter", Share: supervisor.SharePrincipal, MaxInstances: 8},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	if err := m.Ready(ctx, "hi"); err != nil {
		fmt.Println(err)
		return
	}
	for _, person := range []string{"anna", "ben"} {
		if _, err := m.CallServerTool(supervisor.WithCaller(ctx, person), "hi", "greet", map[string]any{"name": person}); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(m.Instances("hi"), m.Tools().Len(), len(m.ToolsFor(supervisor.WithCaller(ctx, "anna"))))
	// Output: [hi@anna hi@ben] 1 1
}

// What a caller may never call is not offered to it: Allow is asked about each tool without arguments, and again about each call with them.
func ExampleManager_ToolsFor() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	m, err := supervisor.Start(ctx, supervisor.Config{
		InProcess: inProcess(),
		Servers:   map[string]supervisor.Spec{"hi": {Type: supervisor.SDK, Name: "greeter"}},
		Allow: func(ctx context.Context, tool *supervisor.Tool, _ json.RawMessage) error {
			if supervisor.CallerOf(ctx) == "anna" {
				return nil
			}
			return errors.New(tool.Name + " is for anna alone")
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = m.Close(ctx) }()
	if err := m.Ready(ctx, "hi"); err != nil {
		fmt.Println(err)
		return
	}
	for _, person := range []string{"anna", "ben"} {
		mine := supervisor.WithCaller(ctx, person)
		out, err := m.CallTool(mine, "mcp__hi__greet", map[string]any{"name": person})
		fmt.Println(person, len(m.ToolsFor(mine)), out.Text(), err)
	}
	// Output:
	// anna 1 hello, anna <nil>
	// ben 0  server "hi", tool "greet": the program refused it: greet is for anna alone (not sent)
}
