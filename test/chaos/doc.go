// Package chaos is the harness for programs and tests: it runs a bad day, judges it, and gives the verdicts.
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
// line over all of it is mcpvisor chaos.
//
// Guaranteed: a Result holds the whole history, and its verdicts are functions of that history alone; the faults that were
// planned and did not happen make it inconclusive, not passed.
//
// Not promised: that a day which passed will pass with another seed. That is what more seeds are for.
package chaos
