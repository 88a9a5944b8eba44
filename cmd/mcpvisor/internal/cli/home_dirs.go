package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// checkHomeDirs refuses a home directory that is no absolute path, and unsets XDG variables that are none, as their
// specification demands ("All paths set in these environment variables must be absolute. If an implementation encounters a
// relative path in any of these variables it should consider the path invalid and ignore it"). Otherwise approvals, sign-ins
// and caches would be written into the project in which mcpvisor is started, and a project could bring its own. The directory for
// sockets of another user, which su, sudo -E and a container hand on, is unset, too ("The directory MUST be owned by the user"): no
// daemon could be started in it, and root would leave one there that its owner may not use.
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
	const name = "XDG_RUNTIME_DIR"
	if dir := os.Getenv(name); dir != "" {
		if foreign := foreignDir(dir); foreign != "" {
			fmt.Fprintf(stderr, "mcpvisor: %s is %s, which %s, and is left out\n", name, messages.Line(dir, 100), foreign)
			return os.Unsetenv(name)
		}
	}
	return nil
}

// foreignDir says, after the name of a directory, why it is none of this user's; empty if it may be, or is not there yet.
func foreignDir(dir string) string {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "you may not enter"
	case err != nil:
		return ""
	}
	return files.ForeignOwner(info)
}
