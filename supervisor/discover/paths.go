package discover

import (
	"os"
	"path/filepath"
	"runtime"
)

// Paths holds the places outside of the project. An empty one is not used.
type Paths struct {
	// User and Managed are configuration files.
	User, Managed string
	// Approvals is the store of approvals. Without one, no server found in a project can start.
	Approvals string
	// Home is the person's home directory, at which the search upward stops, and the value of ${userHome}.
	Home string
}

// DefaultPaths returns the places of this platform for this person. A place that cannot be known (without HOME) stays
// empty.
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

// managedPath returns a fixed place that does not depend on the environment, because the managed person must not be
// able to move the file away.
func managedPath(goos string) string {
	switch goos {
	case "darwin":
		return "/Library/Application Support/mcpvisor/managed-mcp.json"
	case "windows":
		return `C:\ProgramData\mcpvisor\managed-mcp.json`
	}
	return "/etc/mcpvisor/managed-mcp.json"
}
