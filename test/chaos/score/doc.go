// Package score plays the same cases of misbehaviour to any MCP client, and records what the client does.
//
//	result, err := score.Run(ctx, score.Options{Adapter: []string{"node", "my-adapter.js"}})
//	fmt.Print(score.Markdown([]score.Result{result}, "mcpvisor chaos score"))
//
// # How it fits
//
// The command "mcpvisor chaos score" calls [Run] and prints the table. Run drives a client through a small program, its adapter
// (package adapter has the protocol, the packages below adapters have ours). Each case is a short story with a number: servers
// misbehave, over stdio those of package test/servers, over HTTP those of packages peer and performer; Run makes the adapter
// connect, list and call, and every expected behaviour is worth a point.
//
//	Run --commands--> adapter process (the client) --MCP--> servers of the case
//	 |                                                        |
//	 +<------------- records, /proc, requests ----------------+
//
// # Guarantees
//
//   - Where possible, points depend on what the servers and the system saw: which messages the servers got and how often, which
//     processes are left, when requests came, how much memory the client took. The client's own answers count only for what it
//     alone can know: the outcome of a call, the tools that it offers, whether it calls a server connected.
//   - Every case has an adapter process of its own, and every command a time limit. Whatever a case started has ended before
//     its result is returned; an adapter that hangs is killed.
//   - The limits are generous: they tell "never" from "late on a loaded machine", and measure no speed.
//   - Everything stays on this machine's loopback interface.
//
// # Not promised
//
// A client without a point is not bad. A bare client library does not claim to restart servers, to keep many servers apart, or
// to clean up after its own death; the table shows what a program that builds on it has to add. Processes are counted on Linux
// only; elsewhere those points are left out.
package score
