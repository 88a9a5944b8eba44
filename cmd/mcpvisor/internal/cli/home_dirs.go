package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
)

// checkHomeDirs refuses a home directory that is no absolute path, and unsets XDG variables that are none, as their
// specification demands ("All paths set in these environment variables must be absolute. If an implementation encounters a
// relative path in any of these variables it should consider the path invalid and ignore it"). Otherwise approvals, sign-ins
// and caches would be written into the project in which mcpvisor is started, and a project could bring its own.
func checkHomeDirs(stderr io.Writer) error {
	home := "HOME"
	if runtime.GOOS == "windows" {
		home = "USERPROFILE"
	}
	if dir := os.Getenv(home); dir != "" && !filepath.IsAbs(dir) {
		return exit.With(exit.Usage, home+" is "+messages.Line(dir, 100)+", which is no whole path: files of yours would be looked for and "+
			"written in this directory")
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
		if dir := os.Getenv(name); dir != "" && !filepath.IsAbs(dir) {
			fmt.Fprintf(stderr, "mcpvisor: %s is %s, which is no whole path, and is left out\n", name, messages.Line(dir, 100))
			if err := os.Unsetenv(name); err != nil {
				return err
			}
		}
	}
	return nil
}
