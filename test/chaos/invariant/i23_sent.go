package invariant

import "github.com/mcpvisor/mcpvisor/test/chaos/history"

// I23: what is sent to servers is what the specification allows a client to send: each message in its form, of the era that was agreed on, at its
// place in the handshake, with what belongs beside it over HTTP; ids, progress tokens and cursors that may be used; each of the server's own
// requests answered once; cancellations of what is under way; tasks asked for no faster than their server wants, and no longer than they live.
//
// Package sent looks at each message as it arrives, and knows the rules. The record has what breaks them.
var sentCheck = newCheck("I23", "what is sent is right",
	"Every message that a server gets is one that the specification lets a client send, then and there.",
	"No server received a message.",
	func(c *checker) {
		for _, server := range c.x.Servers() {
			for _, i := range c.x.ServerEvents(server) {
				if c.x.Event(i).Kind == history.Received {
					c.judged++
				}
			}
		}
	})
