// Package client plays bad days to any MCP client of this process, in memory and virtual time: the client of a library, or a program's
// own that stands on one. A day of a minute takes some milliseconds, and the same plan gives the same day.
//
//	h, err := client.Run(ctx, client.Case(k, messages.EraLegacy), dial)
//	for _, v := range client.Judge(h, client.Limits{}) { … }
//
// Tests use it through package chaos (chaos.TestClient), which names the cases, draws random days and shrinks those that fail. A random
// day has up to four servers with a client each, calls that their callers give up, and restarts of clients.
//
// # How it fits
//
// [Run] makes the servers of a plan with package performer, in memory, begins and ends their faults, and makes the calls of the plan
// with the client that [Dial] returns. The record is package history's. [Judge] reads the record alone: what the servers saw, and
// what the callers got. Its checks are C1 to C11.
//
//	Run --Tools, Call, Close--> Client == streams or HTTP in memory ==> performer.Server <-- faults of the plan
//	 |                                wire: what the client sends, read on its way
//	 +----------- events: calls, ends -----------> history <----------- what was received, run, opened, released
//
// # Guarantees
//
//   - A client that stops virtual time, because it holds a mutex while it waits, is found out within seconds ([ErrFrozen]); [RunReal]
//     plays its day in real time.
//   - A run ends, also with a client that hangs, loops or leaves goroutines behind: the record says so.
//   - No socket, no process and no file is used. Everything that the client starts lives in a bubble of testing/synctest, so that its
//     timers cost nothing; it must not use what was made outside of the bubble, such as a channel or a client of an earlier day.
//
// # Not promised
//
// A client that lets goroutines race within one instant may do so in another order in another run; with GOMAXPROCS=1 they nearly
// always come in the same. Bytes of real pipes, processes and memory are package score's.
//
// The package is part of a harness for tests: what it exports may change without notice.
package client
