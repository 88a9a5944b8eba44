// Package score plays the same bad days to any MCP client, and says what was seen.
//
//	result, err := score.Run(ctx, score.Options{Adapter: []string{"node", "my-adapter.js"}})
//	fmt.Print(score.Markdown([]score.Result{result}))
//
// A client is driven through a small program, its adapter (package adapter has the protocol). Each case is a short story
// with a number: the servers of package test/servers and a server over HTTP of this package misbehave, the adapter is told
// to connect, to list and to call, and every thing that must be seen is worth a point.
//
// Guarantees:
//
//   - The judge is the world wherever that is possible: what the servers were sent and how often, which processes are left,
//     when requests came, how much memory the client took. The client's word counts only for what only it can know: the
//     outcome of a call, the tools that it offers, whether it calls a server connected.
//   - Every case has an adapter process of its own, and every command a bound. Whatever a case started is gone before its
//     result is: an adapter that hangs is killed.
//   - Bounds are generous: they tell "never" from "late on a loaded machine", and say nothing of speed.
//   - Everything stays on this machine's loopback.
//
// Not promised: that a client without a point is bad. A bare client library does not claim to restart servers, to keep a
// fleet apart, or to survive its own death; the table shows what whoever builds on it has to bring. Processes are counted
// on Linux only; elsewhere the points for that are left out.
package score
