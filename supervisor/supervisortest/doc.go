// Package supervisortest runs a manager on scripted servers in a test: in one line, in the same process, without a network, and in
// virtual time where the test runs under testing/synctest.
//
//	func TestAgent(t *testing.T) {
//		files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"))
//		m := supervisortest.Start(t, files)
//		// … m.CallTool(ctx, "mcp__files__read", nil) …
//		files.Crash()                        // as a server that dies: the manager connects it again
//	}
//
// A [Server] does what it is told: [Server.Crash], [Server.Refuse], [Server.Hang], [Server.SetSilent], [Server.SetTools],
// [Server.Ask]; it counts its connections and keeps the calls that it got, with caller and _meta. A tool is one line, with a
// function of the test or without one.
//
// # Virtual time
//
// Nothing of the manager but its processes and its network needs real time. In a function given to synctest.Test the clock moves on
// whenever every goroutine waits, so that a server which comes back after ten minutes of backoff costs a test nothing, and the same
// test sees the same times in each run:
//
//	synctest.Test(t, func(t *testing.T) {
//		files := supervisortest.NewServer("files", supervisortest.Text("read", "hello"))
//		m := supervisortest.Start(t, files)
//		files.Refuse(errors.New("down"))
//		files.Crash()
//		time.Sleep(10 * time.Minute)         // no real time passes
//	})
//
// The manager must be started and closed within that function, as Start does: its goroutines belong to the bubble.
//
// # How it fits
//
// The servers are functions for Config.InProcess (package transports/inprocess) that speak the protocol of 2025-11-25. Faults on a
// real transport are package transports/fault; whole days of faults with judges are command mcpvisor chaos.
//
// # Guarantees
//
//   - When the test ends, the manager is closed, and the test fails if something of it is left.
//   - The functions of this package may be called from any goroutine, in any order, also before Start.
//   - It needs no package that the library does not need.
//
// # Not promised
//
// A complete MCP server: it has tools, and asks questions. What it answers otherwise is "method not found", as small servers do.
package supervisortest
