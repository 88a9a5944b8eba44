// Package files replaces a file as a whole: a crash leaves the old content or the new one, and a reader never sees half of it.
// It also reads the number of the form in which something was stored, so that an older program leaves alone what a newer one wrote,
// and says to whom else a file is open.
//
// # How it fits
//
// Each store describes its [Format] and reads by it: approvals, pins, sign-ins and the journal.
//
// The caller opens a new file in the folder of the one to replace, under a name and with the permissions that it chooses, and
// hands it to [Replace]. The stores of sign-ins, edits of configuration files and downloads of bundles do so. Whether other
// processes may do the same at the same time is decided by the caller's lock.
//
// Not promised: that another file system or a network keeps the promises of a rename.
//
// Public for the packages of this module: what it exports may change without notice.
package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Replace fills temp by write, syncs and closes it, calls check, and renames it to path, in whose folder it is. An error, also
// that of write or check, leaves path as it was and removes temp. The time between check and the rename is as short as can be.
// Without a function the step is left out.
func Replace(temp *os.File, path string, write, check func() error) (err error) {
	defer func() {
		if err != nil {
			// The caller gets the first error, and not those of closing once more and of the removal.
			_ = temp.Close()
			_ = os.Remove(temp.Name())
		}
	}()
	if write != nil {
		if err := write(); err != nil {
			return err
		}
	}
	// Without the sync, a loss of power after the rename could leave an empty file.
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	if check != nil {
		if err := check(); err != nil {
			return err
		}
	}
	if err := rename(temp.Name(), path); err != nil {
		return err
	}
	SyncDir(filepath.Dir(path))
	return nil
}

// rename repeats the rename on Windows, for 200 ms, while another program reads the file that it replaces.
func rename(from, to string) (err error) {
	for range 20 {
		if err = os.Rename(from, to); err == nil || runtime.GOOS != "windows" {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// SyncDir makes a rename or a removal survive a loss of power, where the system can. Errors are ignored: the content itself was
// synced.
func SyncDir(dir string) {
	if runtime.GOOS == "windows" {
		return
	}
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

// PlainCause returns the cause of an error of the file system without path and operation, for a sentence that names the path, and
// any other error as it is.
func PlainCause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
