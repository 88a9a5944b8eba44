package discover

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxSum bounds a file of a project whose content an approval binds, and maxSums all of them together in one reading,
// both in bytes. Of larger files, size and time count.
const (
	maxSum  = 8 << 20
	maxSums = 64 << 20
)

// projectSums returns a function for one reading that gives the sums of regular files which lie in the project. Sums of
// larger files, and of those beyond maxSums in all, consist of size and time. A file that exists and cannot be read has
// the constant sum "unreadable", so that the binding still names it.
func projectSums(project string) func(path string) (string, bool) {
	bytesLeft := int64(maxSums)
	return func(path string) (string, bool) {
		// A missing file is the common case, and costs no opening of the root.
		info, err := os.Lstat(path)
		if err != nil || info.IsDir() {
			return "", false
		}
		real, err := resolveInProject(project, path)
		if err != nil {
			return "", false
		}
		// The root keeps a link that is put there meanwhile from leading out.
		root, err := os.OpenRoot(project)
		if err != nil {
			return "", false
		}
		defer root.Close()
		rel, err := filepath.Rel(project, real)
		if err != nil {
			return "", false
		}
		info, err = root.Stat(rel)
		switch {
		case err != nil || !info.Mode().IsRegular():
			return "", false
		// Size and time stand for content that is not read.
		case info.Size() > maxSum || info.Size() > bytesLeft:
			return fmt.Sprintf("size %d, %d", info.Size(), info.ModTime().UnixNano()), true
		}
		bytesLeft -= info.Size()
		f, err := root.Open(rel)
		if err != nil {
			return "unreadable", true
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, io.LimitReader(f, maxSum)); err != nil {
			return "unreadable", true
		}
		return hex.EncodeToString(h.Sum(nil)), true
	}
}

// fileStamp returns size, time and mode of a file, by which a reload notices that it may have changed.
func fileStamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return "-"
	}
	return fmt.Sprintf("%d %d %s", info.Size(), info.ModTime().UnixNano(), info.Mode())
}
