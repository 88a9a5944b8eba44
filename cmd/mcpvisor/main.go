// Command mcpvisor keeps the MCP servers of a project connected, and calls their tools. `mcpvisor help` says how.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], standard())) }
