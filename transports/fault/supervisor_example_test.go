package fault_test

import (
	"context"
	"fmt"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// One server of a manager is wrapped, the others are not: the manager calls Config.Wrap for every server, and gets
// nil for those that stay as they are. The wrapped transport is the one that the spec describes, with its
// environment, directory, isolation, limits and secrets, and the guard of the manager.
func ExampleWrap_supervisor() {
	control, err := fault.New(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := supervisor.Start(context.Background(), supervisor.Config{
		Servers: map[string]supervisor.Spec{"files": {Type: messages.Stdio, Command: "some-server", Env: map[string]string{"LEVEL": "debug"}}},
		Wrap: func(name string, _ supervisor.Spec, t transports.Transport) transports.Transport {
			if name != "files" {
				return nil
			}
			return fault.Wrap(t, control.Named(name))
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close(context.Background())
	// Later, for ten minutes: every call of a tool of "files" takes two seconds longer.
	rule, err := fault.Parse("latency by=2s on=tools/call for=10m")
	if err != nil {
		fmt.Println(err)
		return
	}
	name, err := control.Add(rule)
	fmt.Println(name, err)
	// Output: r1 <nil>
}
