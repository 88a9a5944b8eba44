package control

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// A lock is the right to serve a location. Its file holds the owner's process id, and the kernel releases it with the
// process, so that no crash leaves a location locked.
type lock struct{ file *os.File }

// acquireLock takes the lock of a location without waiting. If another process holds it, the result is no lock and
// that process's id (0 if unknown).
//
// The owner removes the file at its end. So after the lock is taken, the file may be one that has no name any more,
// and another process may have created and locked a new one: then the loop tries again with that.
func acquireLock(path string) (*lock, int, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, 0, err
		}
		// Another process may remove the file between its opening and its locking: see isSameFile below.
		ok, err := tryLock(f)
		switch {
		case err != nil:
			f.Close()
			return nil, 0, err
		case !ok:
			pid := readPID(f)
			f.Close()
			return nil, pid, nil
		}
		// The lock is on the file that the path names now, so no other process can hold another one.
		if isSameFile(f, path) {
			l := &lock{f}
			l.writePID()
			return l, 0, nil
		}
		f.Close()
	}
}

// isSameFile reports whether the open file is still the one with this path.
func isSameFile(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	onDisk, err := os.Stat(path)
	return err == nil && os.SameFile(opened, onDisk)
}

// writePID writes this process's id into the file, for the error texts of other processes. On a full disk they do without it: the lock
// counts, because the kernel holds it and not the file.
func (l *lock) writePID() {
	if l.file.Truncate(0) == nil {
		_, _ = l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
}

// release gives the lock up and removes its file.
func (l *lock) release() {
	// The file is removed while its lock is still held: a process that gets the lock afterwards finds by isSameFile
	// that the file has no name any more. Windows refuses to remove an open file, and a file of a few bytes stays.
	_ = os.Remove(l.file.Name())
	l.file.Close()
}

// readPID reads the owner's process id; 0 if there is none yet, or none that can be read.
func readPID(f *os.File) int {
	text, err := io.ReadAll(io.LimitReader(f, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
