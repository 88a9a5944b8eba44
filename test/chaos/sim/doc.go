// Package sim runs a plan in virtual time: the real manager (supervisor, actors, registry, restart policy, sessions) over
// servers in memory. A day takes about a second.
//
//	plan, err := s.Plan(seed, scenario.Sim)
//	h, err := sim.Run(ctx, plan, sim.Options{})
//	for _, v := range invariant.Judge(h) { … }
//
// # How it fits
//
// Tests and the command "mcpvisor chaos sim" call [Run]; package campaign runs many plans with it. Run owns the manager, one
// peer.Machine per server, the transport in memory between them, and the recorder of package history. Package load says which
// calls are made, and package invariant judges the history afterwards.
//
//	actors  <--one turn at a time--  simulation  --performs actions of-->  peer.Machine
//	   |                                 ^                                     ^
//	   +--Send, Dial, Close--> inbox ----+-------------------------------------+
//
// A run is a bubble of testing/synctest with one loop in it. Whenever every goroutine of the manager waits, the loop does one
// thing: it hands one item of the inbox to its server; or it lets one actor handle one message, chosen by the seed among all
// that have one; or it does what is due at this instant (a server answers, a process dies, a fault begins, a user calls a
// tool); or it sleeps until the next planned time. So the seed decides every interleaving of actors, and most orders that are
// possible at one moment occur in some run.
//
// A scenario may want a second manager, whose servers have an instance for each caller (principals.go): its servers stand on the
// same loop, and their judges in this package. Agents of the callers come to it through a gateway (agents_of_callers.go).
//
// # Guarantees
//
//   - A run ends: at the end of the plan and of Close; or, when it hangs, within seconds, with a history whose last events say
//     which goroutines wait for what; or with an error that holds the stacks of the goroutines that still wait in the harness
//     itself.
//   - Every action of a server has its own time: a random addition below a microsecond keeps two servers from acting in the
//     same nanosecond.
//   - The same plan gives the same history byte for byte, ordered by history.Canonical, if the process runs on one processor
//     and the garbage collector does not run in between: GOMAXPROCS(1), debug.SetGCPercent(-1). [EnableExactRuns] sets both,
//     and the loop then collects garbage itself while every goroutine waits. The processes of "mcpvisor chaos sim" call it.
//     Without it the histories of two runs are nearly always the same, and their verdicts too. With it two runs differ only
//     where Go itself draws: between timers that are due in the same nanosecond, among the ready cases of a select, and, on a
//     busy machine, by taking the processor from a goroutine that it finds at the same place after 10 ms.
//   - Run finds an actor that blocks while it handles a message, actors that send each other messages without end, and
//     goroutines that are left after Close, and records them in the history.
//
// Some servers over HTTP (web, in a scenario) are reached with the program's own client, package transports/web, whose requests the servers
// answer in memory (own_web.go, own_streams.go): the days try that package, too. All other connections are of a transport in memory (wire.go).
//
// # Not promised
//
// The simulated transport does not fail in every way in which a real one can: bytes, sockets and processes belong to package
// live. If the manager lets two goroutines of one session race within one instant, Go's scheduler orders them, not the seed. A
// server in memory uses no processor time, so that nothing here says how fast anything is.
package sim
