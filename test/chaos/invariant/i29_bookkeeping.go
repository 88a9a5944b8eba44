package invariant

import "github.com/mcpvisor/mcpvisor/test/chaos/history"

// I29: the parts of the manager agree with themselves. After each message of an actor the harness has the state of its server, the queue of its
// calls and the gate of the starts count everything again and compare it with their counters, marks and indexes, and now and then the catalog.
// Only a run in which the harness sees the actors, that of the tier sim, judges it.
var bookkeepingCheck = newCheck("I29", "parts agree with themselves",
	"Counters, marks and indexes agreed with what they stand for after each message.",
	"No server changed its phase, or the harness could not look into the manager.",
	func(c *checker) {
		if c.real {
			return
		}
		for _, server := range c.x.Servers() {
			for _, i := range c.x.ServerEvents(server) {
				if e := c.x.Event(i); e.Kind == history.Status {
					c.judged++
				}
			}
		}
	})
