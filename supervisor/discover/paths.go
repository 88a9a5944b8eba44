package discover

import (
	"os"
	"path/filepath"
	"runtime"
)

// Paths are the places outside of the project. An empty one is not looked at.
type Paths struct {
	// User and Managed are configuration files.
	User, Managed string
	// Approvals is the store of approvals. Without one nothing found in a project can start.
	Approvals string
	// Home is the person's directory: where the search upward stops, and what ${userHome} stands for.
	Home string
}

// DefaultPaths are this platform's places for this person. What cannot be known (no HOME) stays empty.
func DefaultPaths() Paths {
	p := Paths{Managed: managedPath(runtime.GOOS)}
	if dir, err := os.UserConfigDir(); err == nil {
		p.User = filepath.Join(dir, "mcpvisor", "mcp.json")
		p.Approvals = filepath.Join(dir, "mcpvisor", "approvals.json")
	}
	if home, err := os.UserHomeDir(); err == nil {
		p.Home = home
	}
	return p
}

// managedPath is fixed, not taken from the environment: the person who is managed must not be able to move the file away.
func managedPath(goos string) string {
	switch goos {
	case "darwin":
		return "/Library/Application Support/mcpvisor/managed-mcp.json"
	case "windows":
		return `C:\ProgramData\mcpvisor\managed-mcp.json`
	}
	return "/etc/mcpvisor/managed-mcp.json"
}
