package discover

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxSum bounds a file of a project whose content an approval binds, and maxSums all of them together at one reading, in bytes.
const (
	maxSum  = 8 << 20
	maxSums = 64 << 20
)

// projectSums gives the sums of files of a project: of regular files that lie in it, in all maxSums. It is used for one reading.
func projectSums(project string) func(path string) (string, bool) {
	bytesLeft := int64(maxSums)
	return func(path string) (string, bool) {
		info, err := os.Lstat(path)
		if err != nil || info.IsDir() {
			return "", false
		}
		real, err := resolveInProject(project, path)
		if err != nil {
			return "", false
		}
		root, err := os.OpenRoot(project)
		if err != nil {
			return "", false
		}
		defer root.Close() // nothing is written through it
		rel, err := filepath.Rel(project, real)
		if err != nil {
			return "", false
		}
		info, err = root.Stat(rel)
		switch {
		case err != nil || !info.Mode().IsRegular():
			return "", false
		case info.Size() > maxSum || info.Size() > bytesLeft: // its size and time stand for what is not read
			return fmt.Sprintf("size %d, %d", info.Size(), info.ModTime().UnixNano()), true
		}
		bytesLeft -= info.Size()
		f, err := root.Open(rel)
		if err != nil {
			return "unreadable", true
		}
		defer f.Close() // nothing was written
		h := sha256.New()
		if _, err := io.Copy(h, io.LimitReader(f, maxSum)); err != nil {
			return "unreadable", true
		}
		return hex.EncodeToString(h.Sum(nil)), true
	}
}

// fileStamp tells by the directory entry whether a file changed.
func fileStamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "-"
	}
	return fmt.Sprintf("%d %d %s", info.Size(), info.ModTime().UnixNano(), info.Mode())
}
