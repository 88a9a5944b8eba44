//go:build unix

package lists

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// noFollow opens no link, and waits for no writer of a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// exposureOf says why a file is not the user's alone; empty if it is.
func exposureOf(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int64(s.Uid) != int64(os.Geteuid()) {
		return fmt.Sprintf("belongs to another user (%d)", s.Uid)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Sprintf("is open to others (mode %#o)", mode)
	}
	return ""
}
