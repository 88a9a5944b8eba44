//go:build unix

package control

import (
	"io/fs"
	"os"
	"syscall"
)

// accessProblem returns the reason for which others have access to a directory; empty if they have none.
func accessProblem(info fs.FileInfo) string {
	// The owner of a directory could open its modes at any time, so the owner counts first.
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Getuid() {
		return "belongs to another user"
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "can be read or written by others"
	}
	return ""
}
