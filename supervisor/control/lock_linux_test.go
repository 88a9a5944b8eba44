package control

import (
	"os"
	"path/filepath"
	"testing"
)

// On a full disk no daemon could be started, because the process id of the lock's holder could not be written.
func TestALockIsTakenOnAFullDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	l, _, err := acquireLock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.release()
	if second, pid, err := acquireLock(path); second != nil || pid != 0 || err != nil {
		t.Errorf("a second holder: %v, process %d, %v", second, pid, err)
	}
}
