package peers

import (
	"io"
	"path/filepath"
	"testing"
)

// MCPInspector is the MCP inspector's command line, a client of other authors.
type MCPInspector struct {
	// Node runs it: a Node that npm installed beside it, because it needs a newer one than the servers do.
	Node string
	// Script is its launcher; with --cli it runs one request and ends.
	Script string
}

// Inspector gives the MCP inspector at the version of inspector/package-lock.json, and installs it first if need be.
func Inspector(tb testing.TB) *MCPInspector {
	tb.Helper()
	i, err := installInspector(tb.Output(), false)
	if err != nil {
		skipOrFail(tb, "the MCP inspector", err)
	}
	return i
}

// installInspector installs the inspector with the Node that is among its packages.
func installInspector(log io.Writer, retry bool) (*MCPInspector, error) {
	dir, err := installPackages(log, retry, "inspector", "inspector")
	if err != nil {
		return nil, err
	}
	modules := filepath.Join(dir, "node_modules")
	i := &MCPInspector{Script: filepath.Join(modules, "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")}
	i.Node, err = nodeOfSuite(modules)
	return i, err
}
