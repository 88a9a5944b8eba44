//go:build unix

package files

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// NoFollow makes the open of a symbolic link fail, also of one that appeared after a look. NoWait keeps an open from waiting for the
// writer of a pipe.
const (
	NoFollow = syscall.O_NOFOLLOW
	NoWait   = syscall.O_NONBLOCK
)

// Exposure says why other users may use a file or a folder, after its name: "is open to others (mode 0644)". It is empty if only this
// user may. The owner counts first, who could open the modes at any time.
func Exposure(info fs.FileInfo) string {
	if foreign := ForeignOwner(info); foreign != "" {
		return foreign
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Sprintf("is open to others (mode %#o)", mode)
	}
	return ""
}

// ForeignOwner says, after the name of a file or a folder, that it belongs to another user; it is empty if it does not.
func ForeignOwner(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int64(s.Uid) != int64(os.Geteuid()) {
		return fmt.Sprintf("belongs to another user (%d)", s.Uid)
	}
	return ""
}
