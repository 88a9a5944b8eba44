// Package live runs a scenario on real processes and sockets of this machine: the manager as it is, with its own
// transports, over servers that misbehave as the plan says.
//
// A program that wants it begins its main (a test binary its TestMain) with Main, so that it can become a server:
//
//	func main() {
//		live.Main(os.Args[1:])
//		…
//	}
//
// and then
//
//	plan, err := s.Plan(seed, scenario.Real)
//	h, err := live.Run(ctx, plan, live.Options{})
//	verdicts := invariant.Judge(h)
//
// # How it works
//
// Every server is a peer.Machine, and all machines live in this process. A stdio server's process is a thin shell: it
// has standard files and signals, and one connection to this process over which it says what it reads and is told what
// to write, to start, or how to end. So a machine outlives its processes, faults begin at once, and the record is one
// list in one order. Servers over HTTP (streamable and SSE) and WebSocket listen on loopback ports of this process.
//
// # Guarantees
//
//   - Nothing leaves this machine: every address is a loopback one.
//   - A process that lost its harness ends by itself, at once, also if the harness was killed. What has a session of its
//     own ends like that too.
//   - Run ends in bounded time: at the plan's end, or sooner when everything is well and stable again, and the time to
//     close. When ctx ends it closes at once; the history is that of what was until then.
//   - When Run returns nothing of it is left: what the manager should have ended and did not is named in House.Left, and
//     killed.
//   - Causes stand before effects in the history: what servers see, what callers do and what the manager says have times of
//     one monotonic clock, taken where it happened, and the history is in the order of these times.
//
// # Not promised
//
// That two runs of one seed are the same: the plan and the machines' chance are, the system's scheduling is not. That the
// moment between an event and the manager's word about it is short: an invariant that compares both leaves room for it
// when Plan.Tier is Real. What the system does not offer (SIGSTOP and /proc are Linux's and other Unixes') does not happen
// there, and the fault that needs it has not fired.
package live
