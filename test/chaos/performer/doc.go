// Package performer performs what the machines of package peer decide, with processes and sockets of this machine: it makes the
// servers of a plan, which misbehave as its faults say.
//
// A program that uses it for servers over stdio begins its main (a test binary its TestMain) with [Main], so that it can become
// such a server:
//
//	performer.Main(os.Args[1:])
//	…
//	group, err := performer.Open(plan, performer.Options{Record: record, Now: now})
//	defer group.Close()
//	connect(group.Server("files").Spec())
//	group.Begin(fault)
//
// # How it fits
//
// Package live connects a manager to the servers, package score the client that it judges. One peer.Machine per server decides;
// this package has the clock, the connections and the timers, and records what it sees in events of package history.
//
//	client <== pipes, sockets ==> connections --messages--> peer.Machine
//	                                   ^------actions---------'
//
// Every machine lives in the process that has opened the group. The process of a stdio server holds only its standard files and
// its signals, and one control connection: over it the process reports what it reads, and receives what to write, to start, and
// how to exit. So a machine outlives its processes, faults begin at once in all of them, and the record is one list in one
// order. Servers over HTTP (streamable and SSE) and WebSocket listen on loopback ports.
//
// # Guarantees
//
//   - Nothing leaves this machine: every address is a loopback one, and requests that name another host are refused.
//   - A server's process ends at once when its control connection ends, also if the program that opened it was killed. A process
//     that has left its group by setsid ends like that too.
//   - After Close no server answers, and no goroutine of the group runs.
//
// # Not promised
//
// What the system lacks (SIGSTOP exists only on Unixes) does not happen there, and the fault that needs it records no effect.
package performer
