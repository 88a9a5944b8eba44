package discover

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// editTries is how often an edit begins anew because another program has changed the file meanwhile.
const editTries = 20

// lockTime is how long an edit waits for the others of this person to be done. Each takes milliseconds.
const lockTime = 5 * time.Second

// ErrBusy is the error of an edit of a file that another program goes on changing.
var ErrBusy = errors.New("it changes all the time; try again when whatever writes it is done")

// Edit changes a file: change is given its content, nothing if it is missing, and gives the new one. If the content is as
// it was, nothing is written. What another program writes meanwhile is not lost: change is then called again, with that.
// Otherwise it is as with Replace; an error of change is returned as it is.
//
// Edits by this package take turns. Of other programs, what they write between the last look and the replacing, which
// follows at once, is lost: file systems have no way to prevent that.
func Edit(path string, change func(old []byte) ([]byte, error)) error {
	return editFile(path, change, func() error { return nil })
}

// editFile is Edit that asks last whether it may.
func editFile(path string, change func(old []byte) ([]byte, error), recheck func() error) error {
	defer lockEdits()()
	for range editTries {
		old, err := readRegular(path)
		if err != nil {
			return err
		}
		now, err := change(bytes.Clone(old))
		if err != nil || bytes.Equal(old, now) {
			return err
		}
		err = replaceFile(path, now, func() error {
			if current, err := readRegular(path); err != nil || !bytes.Equal(current, old) {
				return errChanged
			}
			return recheck()
		})
		if !errors.Is(err, errChanged) {
			return err
		}
	}
	return &fs.PathError{Op: "edit", Path: path, Err: ErrBusy}
}

var errChanged = errors.New("the file has changed")

// readRegular returns what a file holds; nothing if it is missing. More than a regular file is not read: a pipe would block.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "edit", Path: path, Err: errors.New("it is no regular file")}
	}
	return os.ReadFile(path)
}

// lockEdits waits until no other process of this person edits, and gives what ends the turn. The lock is not beside the files:
// it would be found in projects. Where it cannot be had, the comparison of Edit has to do.
func lockEdits() (end func()) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return func() {}
	}
	dir = filepath.Join(dir, "mcpvisor")
	if os.MkdirAll(dir, 0o700) != nil {
		return func() {}
	}
	lock := flock.New(filepath.Join(dir, "edit.lock"), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	if ok, err := lock.TryLockContext(ctx, 5*time.Millisecond); !ok || err != nil {
		return func() {}
	}
	return func() { _ = lock.Unlock() } // it ends with the process at the latest
}
