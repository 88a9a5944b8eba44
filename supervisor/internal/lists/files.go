package lists

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	temporaryPattern = "list-*.tmp"
	// mostPerServer bounds the files of one server: of contexts that never come back, such as tokens that were replaced.
	mostPerServer = 8
	// abandonedAge is the age from which a temporary file is one of a process that was killed.
	abandonedAge = time.Hour
)

// Files are the lists in one directory. Several processes may share it. Safe for concurrent use.
type Files struct {
	dir  string
	warn func(text string)
	key  func() []byte // nil if there is none that can be used
	mu   sync.Mutex    // held while files are replaced or removed
}

// Open makes the Files of a directory, and touches nothing yet: the directory, the key, and what older versions left there
// are looked at on first use. warn is told once why nothing can be kept.
func Open(dir string, warn func(text string)) *Files {
	f := &Files{dir: dir, warn: warn}
	f.key = sync.OnceValue(f.prepareKey)
	return f
}

func (f *Files) prepareKey() []byte {
	f.removeMatching("tools-*", 0) // of versions whose files did not count credentials
	f.removeMatching(temporaryPattern, abandonedAge)
	key, made, err := readKey(f.dir)
	if err != nil {
		f.warn("the tools of lazy servers are not kept for the next start: " + err.Error())
		return nil
	}
	if made {
		f.removeMatching("list-*.json", 0) // of a key that is gone
	}
	return key
}

// removeMatching removes what matches, from an age on. A file that stays is of no use to anybody.
func (f *Files) removeMatching(pattern string, age time.Duration) {
	paths, _ := filepath.Glob(filepath.Join(escapePattern(f.dir), pattern))
	for _, p := range paths {
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) >= age {
			_ = os.Remove(p)
		}
	}
}

// Known reports whether there is any file of a server.
func (f *Files) Known(server string) bool { return len(f.filesOf(server)) > 0 }

// Load is what was saved for a server under a context; nil if nothing was, or nothing can be kept.
func (f *Files) Load(server string, context []byte) []byte {
	path, mark := f.pathFor(server, context)
	if path == "" {
		return nil
	}
	data, err := readPrivate(path, maxFile)
	if err != nil {
		return nil
	}
	said, data, ok := bytes.Cut(data, []byte("\n"))
	if !ok || !hmac.Equal(said, mark) { // somebody has renamed a file
		return nil
	}
	return data
}

// Save keeps data for a server under a context. An error is not told: the next start is slower, and no more.
func (f *Files) Save(server string, context, data []byte) {
	path, mark := f.pathFor(server, context)
	if path == "" {
		return
	}
	tmp, err := os.CreateTemp(f.dir, temporaryPattern)
	if err != nil {
		return
	}
	_, werr := tmp.Write(slices.Concat(mark, []byte("\n"), data))
	cerr := tmp.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	if werr != nil || cerr != nil || os.Rename(tmp.Name(), path) != nil {
		_ = os.Remove(tmp.Name())
		return
	}
	f.pruneServer(server)
}

// Remove forgets what was saved for a server under a context.
func (f *Files) Remove(server string, context []byte) {
	if path, _ := f.pathFor(server, context); path != "" {
		_ = os.Remove(path)
	}
}

// Forget removes the files of a server, whatever their contexts.
func (f *Files) Forget(server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, path := range f.filesOf(server) {
		_ = os.Remove(path)
	}
}

// pruneServer leaves the newest files of a server.
func (f *Files) pruneServer(server string) {
	paths := f.filesOf(server)
	if len(paths) <= mostPerServer {
		return
	}
	age := map[string]time.Time{}
	for _, p := range paths {
		if info, err := os.Lstat(p); err == nil {
			age[p] = info.ModTime()
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return age[b].Compare(age[a]) })
	for _, p := range paths[mostPerServer:] {
		_ = os.Remove(p)
	}
}

func (f *Files) filesOf(server string) []string {
	key := f.key()
	if key == nil {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(escapePattern(f.dir), filePrefix(key, server)+"*.json"))
	return paths
}

// pathFor is the file of a context, and the line that it begins with.
func (f *Files) pathFor(server string, context []byte) (path string, mark []byte) {
	key := f.key()
	if key == nil {
		return "", nil
	}
	text := hex.EncodeToString(keyedHash(key, "list", server, string(context)))
	return filepath.Join(f.dir, filePrefix(key, server)+text[:32]+".json"), []byte(text)
}

func filePrefix(key []byte, server string) string {
	return "list-" + hex.EncodeToString(keyedHash(key, "server", server)[:8]) + "-"
}

// keyedHash is that of the digests of parts: no two lists of parts are the same bytes.
func keyedHash(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p))
		h.Write(sum[:])
	}
	return h.Sum(nil)
}

// escapePattern lets a directory stand in a pattern.
func escapePattern(dir string) string {
	var b []byte
	for i := range len(dir) {
		if os.PathSeparator != '\\' && (dir[i] == '*' || dir[i] == '?' || dir[i] == '[' || dir[i] == '\\') {
			b = append(b, '\\')
		}
		b = append(b, dir[i])
	}
	return string(b)
}
