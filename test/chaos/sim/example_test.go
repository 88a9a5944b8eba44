package sim_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/test/chaos/sim"
)

func Example() {
	day := scenario.Scenario{
		Name: "a-day", Duration: messages.Duration(24 * time.Hour),
		Servers: []scenario.Group{{Name: "s", Count: 20}},
		Faults:  []scenario.Fault{{Fault: "crash", On: scenario.Selector{"s-007"}, At: messages.Duration(12 * time.Hour)}},
	}
	plan, err := day.Plan(1, scenario.Sim)
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := sim.Run(context.Background(), plan, sim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range h.Events {
		if e.Kind == history.Opened && e.Conn > 1 {
			fmt.Println(e.Server, "was started again", (e.T - 12*time.Hour).Truncate(time.Second), "after noon")
		}
	}
	// Output: s-007 was started again 0s after noon
}
