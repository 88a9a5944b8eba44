package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/files"
)

// TestReplace: the steps in their order, and an error of each, which leaves the old content and nothing beside it.
func TestReplace(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name         string
		write, check error
		closed       bool // the file is closed before it is synced
		blocked      bool // a folder stands where the file is to be
		want         string
	}{
		{name: "all is well", want: "new"},
		{name: "write fails", write: broken, want: "old"},
		{name: "check fails", check: broken, want: "old"},
		{name: "sync fails", closed: true, want: "old"},
		{name: "rename fails", blocked: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if c.blocked {
				if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
					t.Fatal(err)
				}
			} else if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			temp, err := os.CreateTemp(dir, "new.*")
			if err != nil {
				t.Fatal(err)
			}
			err = files.Replace(temp, path, func() error {
				_, err := temp.WriteString("new")
				if c.closed {
					err = errors.Join(err, temp.Close())
				}
				return errors.Join(err, c.write)
			}, func() error {
				// The new content is whole before the old one is given up.
				written, err := os.ReadFile(temp.Name())
				if old, _ := os.ReadFile(path); string(written) != "new" || !c.blocked && string(old) != "old" {
					t.Errorf("%q and %q, %v", written, old, err)
				}
				return c.check
			})
			if (err == nil) != (c.want == "new") || (c.write != nil || c.check != nil) && !errors.Is(err, broken) {
				t.Error(err)
			}
			if got, _ := os.ReadFile(path); !c.blocked && string(got) != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != 1 {
				t.Errorf("%v, %v", entries, err)
			}
		})
	}
}

func TestReplaceWithoutSteps(t *testing.T) {
	dir := t.TempDir()
	temp, err := os.Create(filepath.Join(dir, "new"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "f")
	if err := files.Replace(temp, path, nil, nil); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 0 {
		t.Error(info, err)
	}
	files.SyncDir(filepath.Join(dir, "missing"))
}

// TestPlainCause: a sentence that begins with a path does not repeat it.
func TestPlainCause(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	_, open := os.Open(none)
	for _, err := range []error{open, os.Rename(none, none+"2"), fmt.Errorf("read: %w", open)} {
		if got := files.PlainCause(err); strings.Contains(got.Error(), "none") || !errors.Is(got, fs.ErrNotExist) {
			t.Errorf("%v became %v", err, got)
		}
	}
	if other := errors.New("other"); files.PlainCause(other) != other {
		t.Error("another error is changed")
	}
}
