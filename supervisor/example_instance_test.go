package supervisor_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
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
			"hi": {Type: messages.SDK, Name: "greeter", Share: supervisor.SharePrincipal, MaxInstances: 8},
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
