package control

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes a lock that Windows releases when this process ends, and reports false if another process holds it.
// It covers a byte far behind the content, because others cannot read a locked byte.
func tryLock(f *os.File) (bool, error) {
	at := windows.Overlapped{OffsetHigh: 1}
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at)
	// This error means that another process holds the lock; any other is a failure.
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}
