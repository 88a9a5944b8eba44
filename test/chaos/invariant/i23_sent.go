package invariant

import "github.com/mcpvisor/mcpvisor/test/chaos/history"

// I23: the manager sends to servers only what the specification allows a client to send: each message in its form, of the era
// that was agreed on, at its place in the handshake, with its headers over HTTP; ids, progress tokens and cursors that it may
// use; one answer to each request of the server; cancellations of requests in progress; requests about tasks no more often than
// their server wants, and no longer than the tasks live.
//
// Package sent judges each message as it arrives, because the record does not hold the bodies. It adds a Violation event for
// each breach; this check counts the messages.
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
