// Package servers holds MCP servers over standard input and output for tests: one that behaves, and many that do what
// real ones were seen doing. They are plain Go without an MCP library, so that a bug of a library hides none of
// mcpvisor, and small enough to start by the hundred.
//
// A program becomes one of them by re-executing itself. Its main, or its TestMain, begins with
//
//	if servers.Main(os.Args[1:]) {
//		return
//	}
//
// and Command returns the command line of a fixture:
//
//	command, args := servers.Command("crash-after", "after=2s", "code=3")
//
// Parameters are key=value. Kinds lists every fixture with its behaviour and the parameters that it knows. In all that
// a fixture does not break it converses like "good", unless its description says otherwise: it answers initialize,
// ping, tools/list and tools/call, and ends with exit code 0 when standard input ends.
//
// Every fixture that converses takes record=FILE and appends what it receives: a line "started", then a line for each
// message. The name of the file stands in the command lines of the fixture and of its children, by which a test can
// find them.
//
// # How it fits
//
// Tests and benchmarks of transports, supervisor and cmd, and the real tier of test/chaos, start these servers as child
// processes. The package calls nothing of mcpvisor. Package web beside this one serves over HTTP.
//
// Benchmarks take [Fixed], which answers without decoding, and run it in a [Child] where it must not count as the client's cost.
//
// Two clients that do not know the fixtures, the Go SDK's and mcp-go's, talk to them in the tests. The servers of package
// test/chaos/score over HTTP, and those of test/chaos/peer, are written apart from these, so that one misreading of the protocol is
// not everybody's truth.
//
// The fixtures belong to the legacy era, except those whose names begin with "modern", which know no initialize.
//
// Not promised: that a fixture validates what it receives. Its purpose is to be a server, and the tests judge the
// client.
package servers
