// Package sim runs a plan in virtual time: the real manager (supervisor, actors, registry, restart policy, sessions) over
// servers in memory, a day in a second.
//
//	plan, err := s.Plan(seed, scenario.Sim)
//	h, err := sim.Run(ctx, plan, sim.Options{})
//	for _, v := range invariant.Judge(h) { … }
//
// A run is a bubble of testing/synctest with one loop, the world. Whenever every goroutine of the manager waits, the world
// does one thing: it lets one actor handle one message, chosen by the seed among all that have one; or it does what is
// due at this instant (a server answers, a process dies, a fault begins, somebody calls a tool); or it sleeps until the
// next moment at which anything can happen. So every interleaving of actors comes from the seed, and most of what could
// happen at one moment happens in some run.
//
// Guaranteed:
//
//   - A run ends: at the end of the plan and of Close; or within seconds when it hangs, with a history whose last words are who waits for
//     what; or with an error that holds the stacks of what still waits in the harness itself.
//   - Everything that the servers do has a time of its own: two servers hardly ever act in the same nanosecond.
//   - The same plan gives the same history, ordered by history.Canonical, byte for byte, if the process runs on one
//     processor and the collector of garbage does not come in between: GOMAXPROCS(1), debug.SetGCPercent(-1). Exact sets
//     both, and the world collects by hand while nothing moves. The processes of mcpvisor chaos sim do so. Otherwise the
//     histories of two runs are nearly always the same, and their verdicts too.
//   - A message that does not come back from an actor, an actor that talks without an end, and goroutines that are left
//     after Close are found here, and stand in the history.
//
// Not promised: that a simulated transport fails in every way in which a real one can. Bytes, sockets and processes belong
// to package live. Two goroutines of one session that the manager itself lets race within one instant are ordered by Go's
// scheduler, and not by the seed. A server in memory does not use processor time: nothing here says how fast anything is.
package sim
