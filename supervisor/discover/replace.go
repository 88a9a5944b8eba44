package discover

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/transports/files"
)

// ErrReadOnly is the cause of the error about a file whose permissions let no user write. A rename would go past those
// permissions.
var ErrReadOnly = errors.New("it is read-only; make it writable first")

// Replace writes a file as a whole: a crash leaves the old content or the new one, and a reader never sees half of it.
// A symbolic link stays, and its target is replaced. An existing file keeps its permissions; a new one, and missing
// folders, are for the person alone (0600, 0700).
//
// Not promised: the owner and group of a file that belongs to another user, and hard links, which keep the old content.
func Replace(path string, data []byte) error {
	return replaceFile(path, data, func() error { return nil })
}

// replaceFile writes the new content beside the target, syncs it, calls recheck and renames. An error of recheck leaves
// the file as it was.
func replaceFile(link string, data []byte, recheck func() error) error {
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
	// The temporary file is in the same directory, because a rename does not cross file systems. Its mode is 0600.
	tmp, err := os.CreateTemp(dir, filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	return files.Replace(tmp, path, func() error {
		_, err := tmp.Write(data)
		return err
	}, func() error {
		// The permissions are copied before the file gets its name.
		if err := os.Chmod(tmp.Name(), mode); err != nil {
			return err
		}
		if err := recheck(); err != nil {
			return err
		}
		if current, err := linkTarget(link); err != nil || current != path {
			// The link leads elsewhere by now.
			return errChanged
		}
		return nil
	})
}

// linkTarget returns the file that a path leads to through symbolic links, the last of which may lead to a missing
// file.
func linkTarget(path string) (string, error) {
	for range 40 {
		info, err := os.Lstat(path)
		// A target that does not exist yet is created where the link says.
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
