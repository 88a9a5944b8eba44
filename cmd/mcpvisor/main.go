// Command mcpvisor keeps the MCP servers of a project connected, and calls their tools. `mcpvisor help` says how.
package main

import (
	"os"

	chaoslive "github.com/mcpvisor/mcpvisor/test/chaos/live"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

func main() {
	servers.Main(os.Args[1:])   // a fixture of mcpvisor chaos score
	chaoslive.Main(os.Args[1:]) // a misbehaving server of mcpvisor chaos run, if it was started as one
	protectProcess(os.Args[1:], os.Stderr)
	os.Exit(run(os.Args[1:], standardStreams()))
}
