// Package transporttest is the contract that every transport passes, as a test suite, and the scripted peer that the suite talks
// to.
//
// A kind of transport joins with one test in package transports_test:
//
//	func TestHTTPContract(t *testing.T) { transporttest.Run(t, transporttest.Harness{New: …}) }
//
// [Harness].New starts a peer and returns the transport that reaches it. The peer is a [Script], which knows the commands (echo,
// big, silent, die, …), behind a [Port], which knows the kind: how to write a message, how to die. A peer with one stream of
// messages runs Script.Serve; a peer with one exchange per request (HTTP) calls Script.Play for each.
//
//	suite ── Send ──> transport under test ── the kind's frames ──> peer: Port and Script
//	  ^                    │                                            │
//	  └── Recorder <───────┘ Sink <─────── answers, notes, noise ───────┘
//
// # How it fits
//
// The tests of package transports, and of transports/fault for what it wraps, call [Run]. The suite uses only the interfaces of
// package transports, so that a new kind needs no change here. Each test owns its peer, its connections and its Recorder, and
// ends them by t.Cleanup.
//
// The suite checks the guarantees of package transports and nothing else, so that a test that fails names the sentence that does
// not hold. It measures no speed: every bound is Harness.Bound, which is generous.
//
// The suite compares the goroutines before and after each test. Goroutines of tests that run at the same time (t.Parallel) would
// count as leaks of the suite: do not run such tests beside it.
package transporttest
