//go:build unix

package auth

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openNonblock keeps the opening of a pipe from waiting for a writer, if one was put in the file's place.
const openNonblock = syscall.O_NONBLOCK

// exposureReason returns why others may use a file, empty if only the user may.
func exposureReason(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int64(s.Uid) != int64(os.Geteuid()) {
		return fmt.Sprintf("belongs to another user (%d)", s.Uid)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Sprintf("is open to others (mode %#o)", mode)
	}
	return ""
}
