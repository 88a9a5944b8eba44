// Package conformance runs the official conformance suite of the Model Context Protocol against mcpvisor's client.
//
//	make conformance                                                 # all of it; what CI runs
//	go run ./test/conformance/run -only 2026-07-28/http-custom       # some of it, by a regular expression
//
// The suite is npm's @modelcontextprotocol/conformance at the version of npm/package-lock.json, which also brings the
// Node that it needs. For each scenario it plays a server, and starts the program of package client with the server's
// URL. That program is written against the facade, package supervisor, as any other program is: nothing in it speaks
// the protocol, chooses a protocol version, or knows what the suite checks.
//
// What is run:
//
//   - What the two requirement sets of the suite ask of a client, 2025-11-25 and 2026-07-28, each scenario at that
//     version.
//   - What these sets list as not scored (extensions, and scenarios that came after a release), and what Extra names.
//     Unscored scenarios do not count for conformance; a failure of one that is not expected is a failure all the same.
//
// The scenarios for servers are played to the servers over HTTP of test/chaos/score (ServerRuns), because points that a client wins
// or loses there are worth what those servers are.
//
// The sets for servers are played through the gateway (GatewayCases), with the Go SDK's everything-server behind it: in the era of each
// set and across the eras, over stdio and HTTP.
//
// NotRun says which of the suite's scenarios for clients are left out, and why. A scenario of the suite that is neither run nor
// named there is an error, so that a new version of the suite cannot bring one unnoticed.
//
// A run passes if the suite says so and at least one of its checks succeeded: no failed check, no warning, no
// time-out, and a client that exits with 0. What fails must stand in expected-failures.yaml with its reason; an entry
// there that passes is a failure too.
//
// Each run is a process of its own, two at a time: the suite's own way of starting all scenarios at once makes slow
// machines fail checks of time. Whatever the suite starts is in a process group of its own and is ended with it.
//
// # How it fits
//
//	plan.go (requirement sets, Extra) ──> Run ──> suite.go (one process each) ──> Outcome ──> Judge ──> Report
//
// Package test/peers installs the suite. The test of this package plays outcomes; command run plays the real suite, and is what
// make conformance and CI start.
package conformance
