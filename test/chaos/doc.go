// Package chaos is the harness for programs and tests: it runs a bad day, judges it, and gives the verdicts.
//
// For a client or a server of your own, whatever it is written with, one statement in a Go test:
//
//	chaos.TestClient(t, gosdk.Dial(newClient))                           // a Go client, in memory and virtual time: milliseconds for a day
//	chaos.TestProgram(t, []string{"node", "adapter.js"})                 // a client that is a program, in real time
//	chaos.TestServer(t, chaos.Spec(messages.Spec{Command: "my-server"})) // a server: a spec, a Handler or a function InProcess
//
// Each case is a subtest. [Only] and [JUnit] are options of all three, [Seed] of clients and programs, [Days], [Within], [Late], [Over],
// [Eras] and [Known] of TestClient, [Calls] of TestServer; one that does not apply or names nothing fails the test. A failure shows what was expected, what was
// seen and the timeline, and a random day is made small before; the same seed plays the same day.
//
// For a manager of mcpvisor:
//
//	func TestOurAgentsServersSurvive(t *testing.T) {
//		s, _ := scenario.Named("flapping")
//		chaos.Require(t, s, 1)
//	}
//
//	r, err := chaos.Simulate(ctx, s, seed)   // virtual time, no process, no socket
//	r, err := chaos.Run(ctx, s, seed)        // real processes and sockets of this machine
//	err = report.Write(dir, r.Report())
//
// The packages below are its parts: scenario is the language, faults what can break, generate makes bad days at random and
// shrink makes them small; sim and live run them; history is the record, invariant judges it, report shows it; peer is the
// server that misbehaves; proxy, check and score turn the same faults on servers and clients of other people. The command
// line over all of it is mcpvisor chaos. Faults on a transport in a unit test are package transports/fault.
//
// Guaranteed: a Result holds the whole history, and its verdicts are functions of that history alone; the faults that were
// planned and did not happen make it inconclusive, not passed.
//
// Not promised: that a day which passed will pass with another seed. That is what more seeds are for.
package chaos
