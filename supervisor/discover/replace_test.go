package discover_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// A file keeps its permissions, a link stays a link, and nothing is left beside it.
func TestReplace(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real", "f.json"), filepath.Join(dir, "link.json")
	if err := discover.Replace(file, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("real", "f.json"), link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := discover.Replace(link, []byte("two")); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	info, _ := os.Lstat(link)
	if err != nil || string(b) != "two" || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("%q, %v, %v", b, err, info.Mode())
	}
	if info, _ := os.Stat(file); runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Error(info.Mode())
	}
	if files, _ := os.ReadDir(filepath.Dir(file)); len(files) != 1 {
		t.Error(files)
	}
	if err := discover.Replace(dir, nil); err == nil {
		t.Error("a folder was replaced")
	}
}

// A file that its owner has made read-only is left alone: to replace it would go past that.
func TestAReadOnlyFileIsNotReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.json")
	if err := os.WriteFile(file, []byte("one"), 0o444); err != nil {
		t.Fatal(err)
	}
	err := discover.Replace(file, []byte("two"))
	if got, _ := os.ReadFile(file); !errors.Is(err, discover.ErrReadOnly) || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
}

// A link to nothing yet is followed; links in a circle are an error.
func TestReplaceFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.Symlink("b", a); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := discover.Replace(a, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(b); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("a", b); err != nil {
		t.Fatal(err)
	}
	if err := discover.Replace(a, nil); err == nil {
		t.Error("a circle was followed")
	}
}
