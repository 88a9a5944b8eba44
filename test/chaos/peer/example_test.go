package peer_test

import (
	"fmt"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

func Example() {
	m := peer.New(peer.Config{Server: scenario.Server{Name: "web", Latency: 10 * time.Millisecond}, Seed: 1})
	now, timers := time.Duration(0), []peer.Wait{}
	perform := func(actions []peer.Action) {
		for _, a := range actions {
			switch a := a.(type) {
			case peer.Accept:
				fmt.Println("connection", a.Conn, "is open")
			case peer.Send:
				fmt.Println(string(a.Body))
			case peer.Wait:
				timers = append(timers, a)
			case peer.Exit:
				fmt.Println("connection", a.Conn, "has ended with code", a.Code)
			case peer.Note:
				fmt.Println("noted:", a.Event.Kind, "in", a.Event.Side)
			}
		}
	}
	perform(m.Open(now, 1))
	perform(m.Receive(now, 1, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), nil))
	for _, w := range timers {
		now += w.After
		perform(m.Wake(now, w.Token))
	}
	perform(m.Begin(now, scenario.PlannedFault{ID: 1, Fault: "crash", With: map[string]string{"code": "3"}}))
	// Output:
	// noted: changed in world
	// connection 1 is open
	// {"jsonrpc":"2.0","id":1,"result":{}}
	// noted: fired in harness
	// connection 1 has ended with code 3
}
