package transports

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// processTempDir is the folder of this process in the system's temporary folder, which holds the private ones of its children. It
// exists while there is one of these, and bears a lock that the system releases when this process dies, so that the next
// process of the same user that needs such a folder removes it (not on Windows, where folders cannot be locked).
type processTempDir struct {
	mu    sync.Mutex
	users int
	path  string
	lock  *os.File
}

const (
	tempPrefix = "mcpvisor-tmp-"
	// tempMarker is a file in the folder of a process, without which a folder of that name is not ours to remove.
	tempMarker = ".mcpvisor-process"
)

var temps processTempDir

// makeChildDir makes a private folder. remove removes it, with whatever is in it; it may be called once.
func (h *processTempDir) makeChildDir() (dir string, remove func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
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

func (h *processTempDir) removeProcessDir() {
	removeTemp(h.path)
	if h.lock != nil {
		_ = h.lock.Close()
	}
	h.path, h.lock = "", nil
}

// makeProcessDir makes and locks the folder of this process. One that another process has taken for an abandoned one, in the
// moment before it was locked, is replaced.
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

// removeStaleTemps removes what processes of this user have left that were killed.
func removeStaleTemps(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, e := range entries {
		path := filepath.Join(parent, e.Name())
		if !strings.HasPrefix(e.Name(), tempPrefix) || !e.IsDir() || !isOwnDir(path) || !hasTempMarker(path) {
			continue
		}
		if lock, ok := lockDir(path); ok && lock != nil {
			removeTemp(path)
			_ = lock.Close()
		}
	}
}

// hasTempMarker reports whether a folder was made for a process.
func hasTempMarker(path string) bool {
	info, err := os.Lstat(filepath.Join(path, tempMarker))
	return err == nil && info.Mode().IsRegular()
}

// removeTemp removes a folder. What a child has protected from itself, as Go's cache of modules is, is opened first.
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
