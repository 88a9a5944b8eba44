package discover

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrReadOnly is the error of an edit of a file whose permissions let no user write: replacing it would go past them.
var ErrReadOnly = errors.New("it is read-only; make it writable first")

// Replace writes a file as a whole: a crash leaves the old content or the new one, and a reader never sees half of it. A
// symbolic link stays, and what it leads to is replaced. The permissions of a file that is there stay; a new one, and
// folders that are missing, are for the person alone (0600, 0700).
//
// Not promised: the owner and group of a file that belongs to another user, and hard links, which go on naming the old
// content.
func Replace(path string, data []byte) error {
	return replaceFile(path, data, func() error { return nil })
}

// replaceFile asks last whether it may.
func replaceFile(link string, data []byte, recheck func() error) (err error) {
	path, err := linkTarget(link)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return &fs.PathError{Op: "replace", Path: path, Err: errors.New("it is no regular file")}
	case err == nil && info.Mode().Perm()&0o222 == 0:
		return &fs.PathError{Op: "replace", Path: path, Err: ErrReadOnly}
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name()) // the first error is the one that counts
		}
	}()
	if _, err = tmp.Write(data); err == nil {
		err = tmp.Sync()
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(tmp.Name(), mode)
	}
	if err == nil {
		err = recheck()
	}
	if current, e := linkTarget(link); err == nil && (e != nil || current != path) {
		err = errChanged // the link leads elsewhere by now
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	return err
}

// linkTarget is the file that a path leads to, through symbolic links, the last of which may lead to nothing yet.
func linkTarget(path string) (string, error) {
	for range 40 {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	return "", &fs.PathError{Op: "replace", Path: path, Err: errors.New("its symbolic links have no end")}
}
