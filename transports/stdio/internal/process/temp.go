package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// tempDir is the folder of this process in the system's temporary folder. The private temporary folders of isolated children are
// made in it. It exists while there is one of these, and bears a lock that the system releases when this process dies, so that
// the next process of the same user that needs such a folder removes it (not on Windows, where folders cannot be locked).
type tempDir struct {
	// mu guards the other fields. users counts the children's folders; path is empty and lock nil while it is 0.
	mu    sync.Mutex
	users int
	path  string
	// lock is the open folder that holds the lock, nil on Windows.
	lock *os.File
}

const (
	// tempPrefix begins the name of every such folder; removeStaleTemps looks at no other names.
	tempPrefix = "mcpvisor-tmp-"
	// tempMarker is a file in the folder of a process. removeStaleTemps leaves a folder without it alone, because another program
	// may have made it.
	tempMarker = ".mcpvisor-process"
)

// temps is the one folder of this process, shared by all connections.
var temps tempDir

// makeChildDir makes a private folder for one child. remove removes it and all that is in it; the caller calls it once, when no
// process of the child is left.
func (h *tempDir) makeChildDir() (dir string, remove func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// The first user also clears what killed processes have left, because nothing else ever does.
	if h.users == 0 {
		removeStaleTemps(os.TempDir())
		if h.path, h.lock, err = makeProcessDir(os.TempDir()); err != nil {
			return "", nil, err
		}
	}
	dir, err = os.MkdirTemp(h.path, "")
	if err != nil {
		if h.users == 0 {
			h.removeProcessDir()
		}
		return "", nil, err
	}
	h.users++
	// A child's folder that is removed late must not take a newer folder of this process with it.
	home := h.path
	return dir, func() {
		removeTemp(dir)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.users--; h.users == 0 && h.path == home {
			h.removeProcessDir()
		}
	}, nil
}

// removeProcessDir removes the folder and then releases the lock, so that no other process takes it for abandoned meanwhile. The
// caller holds mu.
func (h *tempDir) removeProcessDir() {
	removeTemp(h.path)
	if h.lock != nil {
		_ = h.lock.Close()
	}
	h.path, h.lock = "", nil
}

// makeProcessDir makes and locks the folder of this process. Between making and locking, another process may have taken it for an
// abandoned one and removed it; then makeProcessDir makes another.
func makeProcessDir(parent string) (string, *os.File, error) {
	for {
		path, err := os.MkdirTemp(parent, tempPrefix) // 0700
		if err != nil {
			return "", nil, err
		}
		if path, err = filepath.Abs(path); err != nil {
			return "", nil, err
		}
		lock, ok := lockDir(path)
		if !ok {
			continue
		}
		if err := os.WriteFile(filepath.Join(path, tempMarker), nil, 0o600); err != nil {
			removeTemp(path)
			if lock != nil {
				_ = lock.Close()
			}
			return "", nil, err
		}
		return path, lock, nil
	}
}

// removeStaleTemps removes the folders that killed processes of this user have left. A folder whose lock another process holds
// belongs to a living process and stays.
func removeStaleTemps(parent string) {
	// A folder that cannot be listed has nothing to clear; making the new one fails with a reason, if at all.
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		if !strings.HasPrefix(e.Name(), tempPrefix) || !e.IsDir() || !isOwnDir(path) || !hasTempMarker(path) {
			// Without a lock (Windows) an abandoned folder looks like one in use, so that none is removed.
			continue
		}
		if lock, ok := lockDir(path); ok && lock != nil {
			removeTemp(path)
			_ = lock.Close()
		}
	}
}

// hasTempMarker reports whether a folder was made for a process. A link of that name, which another user could have made, does
// not count.
func hasTempMarker(path string) bool {
	info, err := os.Lstat(filepath.Join(path, tempMarker))
	return err == nil && info.Mode().IsRegular()
}

// removeTemp removes a folder. Where that fails, it first opens the folders that a child has made read-only, as Go's module cache
// is. Errors are ignored: what stays is removed by removeStaleTemps of a later process.
func removeTemp(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) //nolint:gosec // WalkDir reads a folder after this was called for it
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
