//go:build unix

package transports

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockDir takes the lock of a folder, if no process has it and the folder is still there.
func lockDir(path string) (*os.File, bool) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		mine, err1 := f.Stat()
		there, err2 := os.Lstat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, there) {
			return f, true
		}
	}
	_ = f.Close()
	return nil, false
}

// isOwnDir reports whether a folder is this user's: the temporary folder of the system is everybody's.
func isOwnDir(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(st.Uid) == os.Geteuid()
}
