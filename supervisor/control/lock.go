package control

import (
	"io"
	"os"
	"strconv"
	"strings"
)

// lock is the right to serve a place. Its file holds the owner's process id.
type lock struct{ file *os.File }

// acquireLock takes the lock of a place. If another process has it, its id is returned (0 if unknown) and no lock.
//
// The file is removed by its owner. So after the lock is taken, the file may be one that nobody finds any more: then
// another one is made.
func acquireLock(path string) (*lock, int, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, 0, err
		}
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
		if isSameFile(f, path) {
			l := &lock{f}
			if err := l.writePID(); err != nil {
				l.release()
				return nil, 0, err
			}
			return l, 0, nil
		}
		f.Close()
	}
}

func isSameFile(f *os.File, path string) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	onDisk, err := os.Stat(path)
	return err == nil && os.SameFile(opened, onDisk)
}

func (l *lock) writePID() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func (l *lock) release() {
	// Removed while it is still held: nobody who waits for it can take a file that is gone for the real one. Windows
	// refuses, and keeps a file of a few bytes.
	_ = os.Remove(l.file.Name())
	l.file.Close()
}

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
