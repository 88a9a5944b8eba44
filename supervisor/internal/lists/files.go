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
	// temporaryPattern names files that are being written; they become lists or the key by a rename or a link.
	temporaryPattern = "list-*.tmp"
	// mostPerServer bounds the files of one server, most of which belong to contexts that never come back, such as replaced tokens.
	mostPerServer = 8
	// abandonedAge is the age from which a temporary file must be one of a process that was killed.
	abandonedAge = time.Hour
)

// Files are the lists in one directory, which several processes may share. Safe for concurrent use.
type Files struct {
	dir string
	// warn tells the log why nothing is kept.
	warn func(text string)
	key  func() []byte // nil if there is no key that may be used: then nothing is kept
	mu   sync.Mutex    // held while files are replaced or removed
}

// Open makes the Files of a directory, and touches nothing yet: the first use reads the directory and the key, and removes what
// older versions left. warn is called at most once, with the reason why nothing can be kept.
func Open(dir string, warn func(text string)) *Files {
	f := &Files{dir: dir, warn: warn}
	f.key = sync.OnceValue(f.prepareKey)
	return f
}

// prepareKey runs once, on first use.
func (f *Files) prepareKey() []byte {
	// What older versions and killed processes left behind is removed once in each process.
	f.removeMatching("tools-*", 0) // of versions whose files did not depend on credentials
	f.removeMatching(temporaryPattern, abandonedAge)
	// Without a key nothing is kept or offered: the file names depend on it.
	key, made, err := readKey(f.dir)
	if err != nil {
		f.warn("the tools of lazy servers are not kept for the next start: " + err.Error())
		return nil
	}
	if made {
		// The lists belong to a key that is gone: they cannot be found any more.
		f.removeMatching("list-*.json", 0)
	}
	return key
}

// removeMatching removes the files that match, from an age on. A failure is ignored: such a file is never read.
func (f *Files) removeMatching(pattern string, age time.Duration) {
	paths, _ := filepath.Glob(filepath.Join(escapePattern(f.dir), pattern))
	for _, p := range paths {
		// A link is left alone: its author may want another file to be removed.
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) >= age {
			_ = os.Remove(p)
		}
	}
}

// Known reports whether there is a file of a server, under any context.
func (f *Files) Known(server string) bool { return len(f.filesOf(server)) > 0 }

// Load returns what was saved for a server under a context; nil if nothing was, or nothing can be kept.
func (f *Files) Load(server string, context []byte) []byte {
	// Another context has another name, so its file is not even opened.
	path, mark := f.pathFor(server, context)
	if path == "" {
		return nil
	}
	data, err := readPrivate(path, maxFile)
	if err != nil {
		return nil
	}
	// The first line repeats the full hash, of which the name has only a part.
	said, data, ok := bytes.Cut(data, []byte("\n"))
	// The line in the file shows that it was not renamed from another context's.
	if !ok || !hmac.Equal(said, mark) {
		return nil
	}
	return data
}

// Save stores data for a server under a context. An error is not reported, because it only makes the next start slower. The file
// appears whole, by a rename.
func (f *Files) Save(server string, context, data []byte) {
	path, mark := f.pathFor(server, context)
	if path == "" {
		return
	}
	// The data is written to a temporary file, which no reader takes for a list.
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

// Remove deletes what was saved for a server under a context.
func (f *Files) Remove(server string, context []byte) {
	if path, _ := f.pathFor(server, context); path != "" {
		_ = os.Remove(path)
	}
}

// Forget removes all files of a server, under all contexts.
func (f *Files) Forget(server string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, path := range f.filesOf(server) {
		_ = os.Remove(path)
	}
}

// pruneServer keeps the newest mostPerServer files of a server. The caller holds mu.
func (f *Files) pruneServer(server string) {
	paths := f.filesOf(server)
	if len(paths) <= mostPerServer {
		return
	}
	// A file that another process has removed meanwhile has no age and counts as the oldest.
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

// filesOf returns the paths of all files of a server; none without a key, which the names depend on.
func (f *Files) filesOf(server string) []string {
	key := f.key()
	if key == nil {
		return nil
	}
	paths, _ := filepath.Glob(filepath.Join(escapePattern(f.dir), filePrefix(key, server)+"*.json"))
	return paths
}

// pathFor returns the file of a context, and the line with which it begins; both are empty if nothing can be kept.
func (f *Files) pathFor(server string, context []byte) (path string, mark []byte) {
	key := f.key()
	if key == nil {
		return "", nil
	}
	text := hex.EncodeToString(keyedHash(key, "list", server, string(context)))
	return filepath.Join(f.dir, filePrefix(key, server)+text[:32]+".json"), []byte(text)
}

// filePrefix begins the names of a server's files: a hash, because a server's id may not be a file name.
func filePrefix(key []byte, server string) string {
	return "list-" + hex.EncodeToString(keyedHash(key, "server", server)[:8]) + "-"
}

// keyedHash hashes the digests of the parts and not the parts, so that no two lists of parts give the same bytes.
func keyedHash(key []byte, parts ...string) []byte {
	// The key keeps a reader of the directory from testing guesses of credentials.
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		sum := sha256.Sum256([]byte(p))
		h.Write(sum[:])
	}
	return h.Sum(nil)
}

// escapePattern makes a directory's name literal in a pattern of filepath.Glob.
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
