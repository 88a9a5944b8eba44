//go:build unix

package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockDir takes the lock of a folder without waiting. ok is false if another process has it, or if the folder was removed, or
// removed and made anew, between opening and locking: the lock would be on a folder that no path leads to.
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

// isOwnDir reports whether a folder belongs to this user. Every user can make folders in the system's temporary folder.
func isOwnDir(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && int(st.Uid) == os.Geteuid()
}
