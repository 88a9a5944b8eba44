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

// editTries bounds how often an edit begins anew because another program has changed the file meanwhile.
const editTries = 20

// lockTime bounds how long an edit waits for other edits of this person, each of which takes milliseconds. After it the
// edit goes on without the lock.
const lockTime = 5 * time.Second

// ErrBusy is returned by an edit of a file that another program goes on changing.
var ErrBusy = errors.New("it changes all the time; try again when whatever writes it is done")

// Edit changes a file. It calls change with the content, nil if the file is missing, and writes the result; equal
// content is not written. If another program writes meanwhile, change is called again with the new content, up to 20
// times. Errors of change are returned as they are; others are those of [Replace], or ErrBusy.
//
// Edits by this package exclude each other by a lock. A write of another program between the last comparison and the
// rename, which follows at once, is lost: file systems have no way to prevent that.
func Edit(path string, change func(old []byte) ([]byte, error)) error {
	return editFile(path, change, func() error { return nil })
}

// editFile does the work of Edit and calls recheck last, before the rename; errChanged from it begins a new try.
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
			// replaceFile calls this function when the new content is written and synced, so that the time between
			// comparing and renaming is short.
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

// errChanged makes editFile begin again.
var errChanged = errors.New("the file has changed")

// readRegular returns the content of a file, nil if it is missing. It refuses everything but regular files, because a
// pipe would block.
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

// lockEdits waits until no other process of this person edits, and returns the function that releases the lock. The
// lock lies in the cache directory, because a lock beside the files would appear in projects. If it cannot be had, the
// edit goes on: the comparison of Edit finds most conflicts.
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
	// Waiting without a bound would let one hanging process stop all edits.
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	if ok, err := lock.TryLockContext(ctx, 5*time.Millisecond); !ok || err != nil {
		return func() {}
	}
	// The system releases the lock at the end of the process at the latest.
	return func() { _ = lock.Unlock() }
}
