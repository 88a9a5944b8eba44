// Package transporttest is the contract that every transport passes, as a test suite, and the scripted peer that the
// suite talks to.
//
// A kind of transport joins with one test in package transports_test:
//
//	func TestHTTPContract(t *testing.T) { transporttest.Run(t, transporttest.Harness{New: …}) }
//
// Harness.New starts a peer and returns the transport that reaches it. The peer is a Script, which knows the commands
// (echo, big, silent, die, …), behind a Port, which knows the kind: how to write a message, how to die. A peer with one
// stream of messages runs Script.Serve; a peer with one exchange per request (HTTP) calls Script.Play for each.
//
// The suite checks the guarantees of package transports and nothing else, so a test that fails names the sentence that
// does not hold. It measures no speed: every bound is Harness.Bound, which is generous.
//
// The suite compares the goroutines before and after each test. Tests that run beside it (t.Parallel) would be blamed
// on it: do not.
package transporttest
