package fault_test

import (
	"context"
	"fmt"

	"github.com/mcpvisor/mcpvisor/transports/fault"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// A game day: every second call of one tool ends the server, from now until the rule is removed.
func ExampleWrap() {
	control, err := fault.New(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	hits := make(chan fault.Hit, 1) // the observer runs beside the calls, so what it sees is printed after them
	control.Watch(func(h fault.Hit) { hits <- h })
	transport := fault.Wrap(inprocess.New(echoing), control.Named("github"))

	rule, err := fault.Parse("die-mid-call tool=search nth=2")
	if err != nil {
		fmt.Println(err)
		return
	}
	name, err := control.Add(rule)
	if err != nil {
		fmt.Println(err)
		return
	}
	conn, err := transport.Dial(context.Background(), &transporttest.Recorder{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for id := range int64(2) {
		delivery, err := conn.Send(context.Background(), request(id+1, "tools/call", "search"))
		fmt.Println(delivery, err)
	}
	<-conn.Released() // the server has ended
	h := <-hits
	fmt.Printf("%s: %s of %s: %s\n", h.Server, h.Fault, h.Tool, h.Text)
	fmt.Println(control.Remove(name))
	// Output:
	// written <nil>
	// written <nil>
	// github: die-mid-call of search: it was executed, and the server ends
	// <nil>
}
