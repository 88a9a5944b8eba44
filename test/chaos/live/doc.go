// Package live runs a scenario on real processes and sockets of this machine: the manager as it is, with its own transports,
// over servers that misbehave as the plan says.
//
// A program that uses it begins its main (a test binary its TestMain) with [performer.Main], so that it can become a server:
//
//	func main() {
//		performer.Main(os.Args[1:])
//		…
//	}
//
// and then
//
//	plan, err := s.Plan(seed, scenario.Real)
//	h, err := live.Run(ctx, plan, live.Options{})
//	verdicts := invariant.Judge(h)
//
// # How it fits
//
// Tests, the command "mcpvisor chaos" and the campaigns of package campaign call [Run]. Run owns one supervisor.Manager, the
// servers of package performer, which do what their peer.Machine decides, and one recorder of package history; package invariant
// judges the history afterwards. Package load says which calls are made, package resources counts what the process holds.
//
//	plan -> run -> Manager <== pipes, sockets ==> performer.Group
//	         |        |events                          |events
//	         +--------+-----------> history.Recorder <-+
//
// # Guarantees
//
//   - Nothing leaves this machine, and no process of a server outlives the harness: see package performer.
//   - Run ends in bounded time: at the plan's end, or sooner when every server is settled, and after closeTimeout and
//     cleanupTimeout. When ctx ends, Run closes the manager at once and returns the history up to then.
//   - When Run returns, it has killed every process that the manager should have ended and did not; the history names them in
//     House.Left.
//   - Causes stand before effects in the history: servers, callers and the manager's events carry times of one monotonic clock,
//     taken where they happened, and the history is sorted by these times.
//
// # Not promised
//
// Two runs of one seed differ: the plan and the machines' random draws are the same, the system's scheduling is not. The time
// between an event and the manager's report of it has no bound: an invariant that compares both allows for it when Plan.Tier is
// Real. What the system lacks (SIGSTOP and /proc exist only on Unixes, or only on Linux) does not happen there, and the fault
// that needs it records no effect.
package live
