package peers

import (
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
)

// TypeScript is the program of typescript/client.mjs, a client of the official TypeScript SDK, with what it needs.
type TypeScript struct {
	// Node runs it. Script is its path.
	Node, Script string
}

// TypeScriptClient gives the client at the versions of typescript/package-lock.json, and installs the SDK first if need be.
func TypeScriptClient(tb testing.TB) *TypeScript {
	tb.Helper()
	c, err := installTypeScript(tb.Output(), false)
	if err != nil {
		skipOrFail(tb, "the TypeScript SDK", err)
	}
	return c
}

// installTypeScript installs both versions of the SDK beside the program.
func installTypeScript(log io.Writer, retry bool) (*TypeScript, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, errors.New("node is not installed")
	}
	if err := nodeIsNewEnough(node, oldestNode); err != nil {
		return nil, err
	}
	dir, err := installPackages(log, retry, "typescript", "typescript", "client.mjs")
	return &TypeScript{Node: node, Script: filepath.Join(dir, "client.mjs")}, err
}
