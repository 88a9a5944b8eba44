//go:build unix

package lists

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes the open fail for a link, and keeps it from waiting for the writer of a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// exposureOf returns in which way other users have access to a file; empty if they have none.
func exposureOf(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int64(s.Uid) != int64(os.Geteuid()) {
		return fmt.Sprintf("belongs to another user (%d)", s.Uid)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Sprintf("is open to others (mode %#o)", mode)
	}
	return ""
}
