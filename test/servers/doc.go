// Package servers is a zoo of MCP servers over standard input and output: one that behaves, and many that do what real
// ones were seen doing. They are plain Go without any MCP library, so that no bug of a library hides one of ours, and
// small enough to start by the hundred.
//
// A program becomes one by re-executing itself. Its main, or its TestMain, begins with
//
//	if servers.Main(os.Args[1:]) {
//		return
//	}
//
// and Command names the command line of a fixture:
//
//	command, args := servers.Command("crash-after", "after=2s", "code=3")
//
// Parameters are key=value. Kinds lists every fixture with what it does and the parameters it knows. All but those that
// say otherwise converse like "good" in everything they do not break: they answer initialize, ping, tools/list and
// tools/call, and end with exit code 0 when standard input ends.
//
// Every one that converses takes record=FILE and appends what it is sent: a line "started", then a line for each message. The
// name of the file stands in the command lines of the fixture and of its children, by which they can be found.
//
// They are of the legacy era, except those whose names begin with "modern": these know no initialize.
//
// Package web beside this one holds the same zoo over HTTP.
//
// Not promised: that a fixture validates what it is sent. It is here to be a server, not to judge a client.
package servers
