//go:build unix

package control

import (
	"io/fs"
	"os"
	"syscall"
)

// accessProblem says why others have a say in a directory; empty if they have not.
func accessProblem(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Getuid() {
		return "belongs to another user"
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "can be read or written by others"
	}
	return ""
}
